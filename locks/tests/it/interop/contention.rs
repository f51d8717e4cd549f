//! Everyone at once on one path, and a witness who knows nothing of locks.

use std::time::Duration;

use tokio::task::JoinSet;
use zk_locks::{Role, RwRecipe};

use super::peer::Peer;
use super::witness::{Rule, contend, room, tell};
use crate::support::{FAIR, Place, lock};

const TURNS: usize = 15;

/// Starts two contenders of ours for each role, and one for each kind of the peers; returns what each came to.
async fn all_at_once(
    place: &Place,
    ours: &[(Role, Rule)],
    theirs: &[(&Peer, &str)],
    their_path: &str,
) -> Vec<String> {
    let room = room(place).await;
    let mut contenders = JoinSet::new();
    for name in ["a", "b"] {
        let session = place.session(name).await;
        for (role, rule) in ours {
            let lock = lock(&session, *role);
            contenders.spawn(contend(lock, *rule, TURNS, room.clone(), place.outsider.clone()));
        }
    }
    for (index, (peer, kind)) in theirs.iter().enumerate() {
        let mut hand = peer.hand(&format!("h{index}"));
        tell(&hand, kind, their_path, TURNS, &room);
        contenders.spawn(async move { hand.answer().await });
    }
    contenders.join_all().await
}

fn all_done(came_to: &[String]) -> bool {
    came_to.iter().all(|it| it == "done")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_libraries_and_one_inside_at_a_time() {
    let place = Place::new().await;
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let theirs =
        [(&curator, "mutex"), (&curator, "mutex"), (&kazoo, "curator-lock"), (&kazoo, "curator-lock")];
    let came_to = all_at_once(&place, &[(FAIR, Rule::Alone)], &theirs, &place.directory()).await;
    assert!(all_done(&came_to), "{came_to:?}");
    place.is_empty_within(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kazoo_as_it_is_and_ours_one_inside_at_a_time() {
    let place = Place::new().await;
    let kazoo = Peer::kazoo(&place).await;
    let theirs = [(&kazoo, "lock"), (&kazoo, "lock")];
    let came_to = all_at_once(&place, &[(FAIR, Rule::Alone)], &theirs, &place.directory()).await;
    assert!(all_done(&came_to), "{came_to:?}");
    place.is_empty_within(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_libraries_read_together_and_write_alone() {
    let place = Place::new().await;
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let ours = [(Role::Write(RwRecipe::Fair), Rule::Alone), (Role::Read(RwRecipe::Fair), Rule::WithReaders)];
    let theirs =
        [(&curator, "write"), (&curator, "read"), (&kazoo, "curator-write"), (&kazoo, "curator-read")];
    let came_to = all_at_once(&place, &ours, &theirs, &place.directory()).await;
    assert!(all_done(&came_to), "{came_to:?}");
    place.is_empty_within(Duration::ZERO).await;
}

/// The witness is worth something: it sees it when the peers lock another path than we do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_witness_sees_who_is_not_excluded() {
    let place = Place::new().await;
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let elsewhere = format!("{}/locks/other", place.chroot);
    for theirs in [(&curator, "mutex"), (&kazoo, "lock")] {
        let came_to = all_at_once(&place, &[(FAIR, Rule::Alone)], &[theirs], &elsewhere).await;
        assert!(came_to.iter().any(|it| it.starts_with("violation")), "{}: {came_to:?}", theirs.1);
        // Whoever saw it left the room as it was.
        drop(place.outsider.delete(&format!("{}/room/alone", place.chroot), None).await);
    }
}
