//! What is asked of the model.
//!
//! *Always* is checked in every state, *sometimes* shows that a run is not empty of what it is about, and
//! *eventually* is about the ends of runs. stateright's *eventually* can miss a counterexample in two ways: in a
//! cycle, and where two paths join of which only the first had the property. Neither applies here: budgets are
//! only spent, so that no run is infinite (`sound::every_run_ends` shows it), and "was served" stays true, so
//! that it holds somewhere on a path exactly if it holds at its end.

use stateright::Property;

use super::client::{Client, Fate, Knowledge};
use super::database::Writer;
use super::zookeeper::Node;
use super::{Fault, Lease, LockModel, State};

pub(super) const EXCLUSION: &str = "a writer whose node stands is alone among those whose nodes stand";
pub(super) const ORDER: &str = "nobody holds while somebody in the way came earlier and stands";
pub(super) const ONE_NODE: &str = "no contender has two nodes";
pub(super) const LEASE: &str = "a writer that is awake and not told of its loss is alone";
pub(super) const TOKENS_RISE: &str = "tokens of accepted writes never go down";
pub(super) const ONE_EACH: &str = "a token is accepted once at most";
pub(super) const NO_LOST_UPDATE: &str = "accepted deductions and what is on hand make the start";
pub(super) const OVERLAP: &str = "two that may not believe that they hold";
pub(super) const REFUSED: &str = "the fence refuses a holder";
pub(super) const READERS_SHARE: &str = "two readers hold";
pub(super) const SOLD_OUT: &str = "an order finds nothing left";
pub(super) const ALL_SOLD: &str = "every order is accepted";
pub(super) const SERVED: &str = "a live waiter gets the lock";

pub(super) fn of(model: &LockModel) -> Vec<Property<LockModel>> {
    let mut all = vec![
        Property::<LockModel>::always(EXCLUSION, exclusion),
        Property::<LockModel>::always(ORDER, order),
        Property::<LockModel>::always(ONE_NODE, one_node),
        Property::<LockModel>::always(NO_LOST_UPDATE, no_lost_update),
        Property::<LockModel>::sometimes(ALL_SOLD, all_sold),
        Property::<LockModel>::eventually(SERVED, served),
    ];
    if model.writer != Writer::Plain {
        all.push(Property::<LockModel>::always(TOKENS_RISE, tokens_rise));
        all.push(Property::<LockModel>::always(ONE_EACH, one_each));
    }
    if model.wanted() > usize::from(model.stock) {
        all.push(Property::<LockModel>::sometimes(SOLD_OUT, |_, state| state.database.sold_out));
    }
    if model.lease == Lease::Kept {
        all.push(Property::<LockModel>::always(LEASE, lease));
    }
    if model.faults_max > 0 && model.faults.contains(&Fault::Expires) {
        all.push(Property::<LockModel>::sometimes(OVERLAP, overlap));
        if model.writer.has_a_fence() && model.writers() > 1 {
            all.push(Property::<LockModel>::sometimes(REFUSED, |_, state| state.database.refused));
        }
    }
    if model.contenders.len() >= model.writers() + 2 {
        all.push(Property::<LockModel>::sometimes(READERS_SHARE, readers_share));
    }
    all
}

/// Whether these may hold together: readers only, or one alone.
fn may_be_together(model: &LockModel, state: &State, inside: impl Fn(&Client) -> bool) -> bool {
    let (mut count, mut writers) = (0, 0);
    for (id, client) in state.each() {
        if inside(client) {
            count += 1;
            writers += usize::from(!model.reads(id));
        }
    }
    writers == 0 || count == 1
}

fn exclusion(model: &LockModel, state: &State) -> bool {
    may_be_together(model, state, |client| client.held().is_some_and(|node| state.zookeeper.stands(node)))
}

/// The queue is served in the order of the creates: no reader passes a writer.
fn order(model: &LockModel, state: &State) -> bool {
    let nodes = &state.zookeeper.directory;
    state.each().filter_map(|(id, client)| Some((id, client.held()?))).all(|(id, own)| {
        let blocks = |node: &&Node| node.born < own.born && !(model.reads(id) && model.reads(node.owner));
        !state.zookeeper.stands(own) || !nodes.iter().any(|node| blocks(&node))
    })
}

fn lease(model: &LockModel, state: &State) -> bool {
    // Unaware is who was frozen when the lease ran out, and has not looked since.
    may_be_together(model, state, |client| client.believes() && client.knowledge == Knowledge::Sure)
}

fn overlap(model: &LockModel, state: &State) -> bool {
    !may_be_together(model, state, Client::believes)
}

fn one_node(_: &LockModel, state: &State) -> bool {
    let nodes = &state.zookeeper.directory;
    state.each().all(|(id, _)| nodes.iter().filter(|node| node.owner == id).count() <= 1)
}

fn tokens_rise(_: &LockModel, state: &State) -> bool {
    state.database.accepted.is_sorted_by_key(|sale| sale.token)
}

fn one_each(_: &LockModel, state: &State) -> bool {
    let sales = &state.database.accepted;
    sales.iter().enumerate().all(|(index, sale)| sales[..index].iter().all(|other| other.token != sale.token))
}

fn no_lost_update(model: &LockModel, state: &State) -> bool {
    usize::from(state.database.on_hand) + state.database.accepted.len() == usize::from(model.stock)
}

fn all_sold(model: &LockModel, state: &State) -> bool {
    state.database.accepted.len() == model.wanted().min(usize::from(model.stock))
}

fn readers_share(model: &LockModel, state: &State) -> bool {
    state.each().filter(|(id, client)| model.reads(*id) && client.believes()).count() >= 2
}

/// Everyone who neither crashed nor gave up nor lost its session while waiting has had the lock.
fn served(model: &LockModel, state: &State) -> bool {
    let done = |client: &Client| client.order == model.orders && client.fate != Fate::Waits;
    state.clients.iter().all(|client| client.crashed || done(client))
}
