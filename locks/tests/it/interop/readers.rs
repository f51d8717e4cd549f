//! The fair read/write lock with Curator's `InterProcessReadWriteLock` and kazoo's `ReadLock` and `WriteLock`.

use std::time::Duration;

use zk_locks::{AcquireError, Role, RwRecipe};

use super::peer::Peer;
use crate::support::{Place, lock, soon};

const READ: Role = Role::Read(RwRecipe::Fair);
const WRITE: Role = Role::Write(RwRecipe::Fair);
const BOTH: [Role; 2] = [READ, WRITE];

/// Holds every pair of accesses against each other, in both directions. `kinds` are the peer's reader and writer.
async fn share_as_readers_and_writers_do(place: &Place, peer: &Peer, kinds: [&str; 2]) {
    let path = place.directory();
    let (session, mut hand) = (place.session("ours").await, peer.hand(kinds[0]));
    for (ours, our_role) in BOTH.into_iter().enumerate() {
        for (theirs, kind) in kinds.into_iter().enumerate() {
            let together = (ours, theirs) == (0, 0);
            let guard = lock(&session, our_role).acquire(soon()).await.unwrap();
            assert_eq!(hand.can_acquire(kind, &path).await, together, "{our_role} held, {kind} wanted");
            guard.release().await.unwrap();

            hand.acquire(kind, &path).await;
            match lock(&session, our_role).try_acquire(soon()).await {
                Ok(guard) => {
                    assert!(together, "{kind} held, {our_role} came in");
                    guard.release().await.unwrap();
                }
                Err(AcquireError::Busy { .. }) => assert!(!together, "{kind} held, {our_role} was kept out"),
                Err(error) => panic!("{error:?}"),
            }
            hand.release(kind, &path).await;
        }
    }
    place.is_empty_within(Duration::ZERO).await;
}

/// Whoever reads waits behind a writer that waits, whoever that is.
async fn no_reader_overtakes_a_writer(place: &Place, peer: &Peer, kinds: [&str; 2]) {
    let path = place.directory();
    let session = place.session("ours").await;
    let (mut first, mut second) = (peer.hand("first"), peer.hand("second"));

    let reader = lock(&session, READ).acquire(soon()).await.unwrap();
    first.queue(kinds[1], &path);
    place.wait_for_nodes(2).await;
    let busy = lock(&session, READ).try_acquire(soon()).await.unwrap_err();
    assert!(matches!(busy, AcquireError::Busy { .. }), "past {}: {busy:?}", kinds[1]);
    reader.release().await.unwrap();
    assert_eq!(first.answer().await, "held");
    first.release(kinds[1], &path).await;

    first.acquire(kinds[0], &path).await;
    let writer = tokio::spawn({
        let lock = lock(&session, WRITE);
        async move { lock.acquire(soon()).await.unwrap() }
    });
    place.wait_for_nodes(2).await;
    assert!(!second.can_acquire(kinds[0], &path).await, "{} past our writer", kinds[0]);
    first.release(kinds[0], &path).await;
    writer.await.unwrap().release().await.unwrap();
}

/// A writer of theirs that waits is not let in between; a reader of theirs right behind is.
async fn our_downgrade_is_understood(place: &Place, peer: &Peer, kinds: [&str; 2]) {
    let path = place.directory();
    let session = place.session("ours").await;
    let mut hand = peer.hand("behind");

    let writer = lock(&session, WRITE).acquire(soon()).await.unwrap();
    hand.tell(&format!("acquire {} {path} 1500", kinds[1]));
    place.wait_for_nodes(2).await;
    let reader = writer.downgrade().await.unwrap();
    assert_eq!(hand.answer().await, "timeout", "{} came in between", kinds[1]);
    reader.release().await.unwrap();

    let writer = lock(&session, WRITE).acquire(soon()).await.unwrap();
    hand.queue(kinds[0], &path);
    place.wait_for_nodes(2).await;
    assert!(hand.is_silent());
    let reader = writer.downgrade().await.unwrap();
    assert_eq!(hand.answer().await, "held", "{} reads with us", kinds[0]);
    assert_eq!(reader.check(), Ok(()));
    hand.release(kinds[0], &path).await;
    reader.release().await.unwrap();
    place.is_empty_within(Duration::ZERO).await;
}

#[tokio::test]
async fn curator_and_ours_read_together_and_write_alone() {
    let place = Place::new().await;
    let curator = Peer::curator(&place).await;
    let kinds = ["read", "write"];
    share_as_readers_and_writers_do(&place, &curator, kinds).await;
    no_reader_overtakes_a_writer(&place, &curator, kinds).await;
    our_downgrade_is_understood(&place, &curator, kinds).await;
}

#[tokio::test]
async fn kazoo_and_ours_read_together_and_write_alone() {
    let place = Place::new().await;
    let kazoo = Peer::kazoo(&place).await;
    for kinds in [["read", "write"], ["curator-read", "curator-write"]] {
        share_as_readers_and_writers_do(&place, &kazoo, kinds).await;
        no_reader_overtakes_a_writer(&place, &kazoo, kinds).await;
        our_downgrade_is_understood(&place, &kazoo, kinds).await;
    }
}

/// Curator downgrades by acquiring to read what it writes. From 5.5 on its reader takes the writer's place in the
/// queue (CURATOR-621); before, a queued writer gets in beside it, ours as well as its own.
#[tokio::test]
async fn a_downgrade_of_curator_keeps_what_curator_promises() {
    let place = Place::new().await;
    let path = place.directory();
    let curator = Peer::curator(&place).await;
    let session = place.session("ours").await;
    let mut hand = curator.hand("c");
    hand.acquire("write", &path).await;
    let writer = tokio::spawn({
        let lock = lock(&session, WRITE);
        async move { lock.acquire(soon()).await.unwrap() }
    });
    place.wait_for_nodes(2).await;
    hand.acquire("read", &path).await;
    hand.release("write", &path).await;
    if curator.version == "downgrade-keeps-place" {
        let busy = lock(&session, READ).try_acquire(soon()).await.unwrap_err();
        assert!(matches!(busy, AcquireError::Busy { .. }), "{busy:?}");
        assert!(!writer.is_finished(), "our writer came in beside the reader");
        hand.release("read", &path).await;
        writer.await.unwrap().release().await.unwrap();
    } else {
        writer.await.unwrap().release().await.unwrap();
        hand.release("read", &path).await;
    }
    place.is_empty_within(Duration::ZERO).await;
}
