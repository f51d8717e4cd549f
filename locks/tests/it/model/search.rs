//! Searches a model, prints what was found, and fails loudly.

use std::collections::HashSet;
use std::mem::discriminant;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use super::action::{Action, letter};
use super::database::Database;
use super::{LockModel, State};

/// Other tests of this binary watch the clock: searches take one core between them.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static SEARCHING: Mutex<()> = Mutex::new(());
    SEARCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a whole search found.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) unique: usize,
    pub(super) depth: usize,
}

/// Searches every state; everything that is asked has to hold.
pub(super) fn holds(what: &str, model: LockModel) -> Searched {
    let _alone = one_at_a_time();
    let started = Instant::now();
    // Depth first: its memory is the set of fingerprints and one path.
    let checker = model.checker().target_max_depth(DEPTH_MAX).spawn_dfs().join();
    let searched = Searched { unique: checker.unique_state_count(), depth: checker.max_depth() };
    println!(
        "{what}: {} states, {} with repeats, depth {}, {:.1} s",
        searched.unique,
        checker.state_count(),
        searched.depth,
        started.elapsed().as_secs_f64()
    );
    let discoveries = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, discoveries.get(property.name)) {
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                panic!("{what}: not so: {}\n{}", property.name, story(path));
            }
            (Expectation::Sometimes, None) => panic!("{what}: never reached: {}", property.name),
            _ => {}
        }
    }
    assert!(searched.depth < DEPTH_MAX, "{what}: cut off at a depth of {DEPTH_MAX}");
    searched
}

/// Far beyond any run of the models here: a search that gets there has found an endless one.
const DEPTH_MAX: usize = 200;

/// Searches breadth first until a property fails, prints the shortest way there, and gives it back in words.
pub(super) fn fails(what: &str, property: &'static str, model: &LockModel) -> String {
    let mut shortest = find(property, model, DEPTH_MAX).unwrap_or_else(|states| {
        panic!("{what}: {states} states, and none that is against: {property}");
    });
    // stateright goes on for some states after its first find, and keeps the last.
    while let Ok(shorter) = find(property, model, shortest.clone().into_states().len()) {
        shortest = shorter;
    }
    let story = story(&shortest);
    println!("{what}: not so: {property}\n{story}");
    story
}

/// A way to a state against a property, through fewer states than that; or how many states there were.
fn find(property: &'static str, model: &LockModel, states: usize) -> Result<Path<State, Action>, usize> {
    let _alone = one_at_a_time();
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = model.clone().checker().finish_when(found).target_max_depth(states).spawn_bfs().join();
    checker.discovery(property).ok_or(checker.unique_state_count())
}

/// Searches every state of a model that fails in other ways for one thing that holds all the same.
pub(super) fn still_holds(what: &str, property: &'static str, model: &LockModel) {
    let _alone = one_at_a_time();
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = model.clone().checker().finish_when(found).target_max_depth(DEPTH_MAX).spawn_dfs().join();
    if let Some(path) = checker.discovery(property) {
        panic!("{what}: not so: {property}\n{}", story(&path));
    }
    assert!(checker.model().properties().iter().any(|asked| asked.name == property), "{property} is asked");
    assert!(checker.max_depth() < DEPTH_MAX, "{what}: cut off at a depth of {DEPTH_MAX}");
}

/// The kinds of actions that happen anywhere in a (small) model.
pub(super) fn kinds_of_actions(model: &LockModel) -> usize {
    let (mut seen, mut kinds) = (HashSet::new(), HashSet::new());
    let mut open = model.init_states();
    while let Some(state) = open.pop() {
        for (action, next) in model.next_steps(&state) {
            kinds.insert(discriminant(&action));
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    kinds.len()
}

/// A path in words: what happened, and how things stood then.
fn story(path: &Path<State, Action>) -> String {
    let steps = path.clone().into_vec();
    let mut story = String::new();
    for (step, pair) in steps.windows(2).enumerate() {
        let [(_, Some(action)), (after, _)] = pair else { continue };
        let believers: Vec<String> = after
            .each()
            .filter(|(_, client)| client.believes())
            .map(|(id, _)| letter(id).to_string())
            .collect();
        let believers = if believers.is_empty() { "-".to_owned() } else { believers.join(" and ") };
        let Database { on_hand, fence, .. } = after.database;
        let action = action.to_string();
        let line =
            format!("{:2}. {action:46} {on_hand} on hand, fence {fence}, holding: {believers}\n", step + 1);
        story.push_str(&line);
    }
    story
}
