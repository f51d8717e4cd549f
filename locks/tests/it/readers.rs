//! Readers and writers: who may be inside together, who waits for whom, and how a writer becomes a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use zk_locks::{Acquire, AcquireError, DowngradeError, Guard, Lost, Owner, Role, RwRecipe};

use crate::support::{EXCLUSIVE, FAIR, Place, SOON, lock, soon};

/// Who is inside: one writer alone, or readers only.
#[derive(Default)]
struct Room {
    readers: AtomicUsize,
    writers: AtomicUsize,
    most_readers: AtomicUsize,
}

impl Room {
    async fn visit(&self, guard: &Guard, reads: bool) {
        let count = if reads { &self.readers } else { &self.writers };
        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
        let (readers, writers) = (self.readers.load(Ordering::SeqCst), self.writers.load(Ordering::SeqCst));
        assert!(
            writers == 0 || (writers, readers) == (1, 0),
            "{writers} writers and {readers} readers inside"
        );
        if reads {
            self.most_readers.fetch_max(now, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(guard.check(), Ok(()));
        count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_share_and_writers_do_not() {
    for recipe in RwRecipe::ALL {
        let place = Place::new().await;
        let room = Arc::new(Room::default());
        let mut visitors = JoinSet::new();
        for name in ["a", "b", "c"] {
            let session = place.session(name).await;
            for visitor in 0..5 {
                let reads = visitor > 0;
                let role = if reads { Role::Read(recipe) } else { Role::Write(recipe) };
                let (lock, room) = (lock(&session, role), Arc::clone(&room));
                visitors.spawn(async move {
                    for _ in 0..8 {
                        let guard = lock.acquire(soon()).await.unwrap();
                        room.visit(&guard, reads).await;
                        guard.release().await.unwrap();
                    }
                });
            }
        }
        while let Some(visitor) = visitors.join_next().await {
            visitor.unwrap();
        }
        assert!(
            room.most_readers.load(Ordering::SeqCst) > 1,
            "readers of {recipe} were never inside together"
        );
        place.is_empty_within(Duration::ZERO).await;
    }
}

/// Case 18: readers that come and go, and overlap, must not keep a writer out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_readers_do_not_starve_a_writer() {
    for recipe in RwRecipe::ALL {
        let place = Place::new().await;
        let session = place.session("one").await;
        let hold = Duration::from_millis(200);
        let mut readers = JoinSet::new();
        for reader in 0..6 {
            let lock = lock(&session, Role::Read(recipe));
            readers.spawn(async move {
                tokio::time::sleep(hold / 6 * reader).await;
                loop {
                    let guard = lock.acquire(soon()).await.unwrap();
                    tokio::time::sleep(hold).await;
                    guard.release().await.unwrap();
                }
            });
        }
        place.wait_for_nodes(6).await;
        let began = Instant::now();
        let guard = lock(&session, Role::Write(recipe)).acquire(soon()).await.unwrap();
        // One longest hold, and as much again for a busy machine: six readers in turn would take far longer.
        assert!(began.elapsed() < hold * 3, "{:?}", began.elapsed());
        readers.abort_all();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_downgrade_lets_no_writer_in_between() {
    for recipe in RwRecipe::ALL {
        let place = Place::new().await;
        let (first, second) = (place.session("first").await, place.session("second").await);
        let writer = lock(&first, Role::Write(recipe)).acquire(soon()).await.unwrap();
        let token = writer.token();
        let next = tokio::spawn({
            let lock = lock(&second, Role::Write(recipe));
            async move { lock.acquire(soon()).await }
        });
        place.wait_for_nodes(2).await;
        let late = tokio::spawn({
            let lock = lock(&second, Role::Read(recipe));
            async move { lock.acquire(soon()).await }
        });
        place.wait_for_nodes(3).await;
        let reader = writer.downgrade().await.unwrap();
        assert_eq!(reader.role(), Role::Read(recipe));
        assert!(reader.token() > token);
        assert_eq!(place.nodes().await.len(), 3, "one node for another");
        // The writer has seen the change and waits all the same.
        let waited = tokio::time::timeout(Duration::from_millis(300), reader.lost()).await;
        assert!(waited.is_err() && !next.is_finished(), "the queued writer came in between");
        reader.release().await.unwrap();
        next.await.unwrap().unwrap().release().await.unwrap();
        late.await.unwrap().unwrap().release().await.unwrap();
        place.is_empty_within(Duration::ZERO).await;
    }
}

/// Readers right behind a writer come in when it becomes a reader.
#[tokio::test]
async fn a_downgrade_lets_readers_in() {
    for recipe in RwRecipe::ALL {
        let place = Place::new().await;
        let session = place.session("one").await;
        let writer = lock(&session, Role::Write(recipe)).acquire(soon()).await.unwrap();
        let behind = tokio::spawn({
            let lock = lock(&session, Role::Read(recipe));
            async move { lock.acquire(soon()).await }
        });
        place.wait_for_nodes(2).await;
        let reader = writer.downgrade().await.unwrap();
        let other = tokio::time::timeout(SOON, behind).await.unwrap().unwrap().unwrap();
        assert_eq!((reader.check(), other.check()), (Ok(()), Ok(())));
    }
}

#[tokio::test]
async fn what_cannot_be_downgraded_says_why() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let role = Role::Write(RwRecipe::Fair);
    let reader = lock(&session, Role::Read(RwRecipe::Fair)).acquire(soon()).await.unwrap();
    assert!(matches!(reader.downgrade().await, Err(DowngradeError::NotAWriter { .. })));
    let lost = lock(&session, role).acquire(soon()).await.unwrap();
    place.outsider.delete(&lost.node(), None).await.unwrap();
    let error = lost.downgrade().await.unwrap_err();
    assert!(matches!(error, DowngradeError::Lost { reason: Lost::NodeDeleted, .. }), "{error:?}");
    place.is_empty_within(Duration::from_secs(2)).await;
}

/// A cancelled downgrade holds nothing: neither node stays.
#[tokio::test]
async fn a_downgrade_that_is_dropped_leaves_nothing() {
    let place = Place::new().await;
    let session = place.session("one").await;
    for patience in 0..20 {
        let guard = lock(&session, Role::Write(RwRecipe::Fair)).acquire(soon()).await.unwrap();
        let patience = Duration::from_micros(patience * 300);
        drop(tokio::time::timeout(patience, guard.downgrade()).await);
        place.is_empty_within(Duration::from_secs(2)).await;
    }
}

#[tokio::test]
async fn an_owner_enters_again_and_holds_until_the_last_guard_goes() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let session = place.session("one").await;
        let (owner, other) = (Owner::new(), Owner::new());
        let first = lock(&session, role).acquire(soon().with_owner(&owner)).await.unwrap();
        let again = lock(&session, role).acquire(soon().with_owner(&owner)).await.unwrap();
        assert_eq!(first.token(), again.token());
        assert_eq!(place.nodes().await.len(), 1);
        let stranger = lock(&session, role).try_acquire(soon().with_owner(&other)).await.unwrap_err();
        assert!(matches!(stranger, AcquireError::Busy { .. }), "{stranger:?}");
        first.release().await.unwrap();
        assert_eq!(again.check(), Ok(()));
        assert_eq!(place.nodes().await.len(), 1, "held by the second guard");
        again.release().await.unwrap();
        place.is_empty_within(Duration::ZERO).await;
        // What is no longer held is acquired like the first time.
        lock(&session, role).acquire(soon().with_owner(&owner)).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_upgrade_is_refused_at_once() {
    for recipe in RwRecipe::ALL {
        let place = Place::new().await;
        let session = place.session("one").await;
        let owner = Owner::new();
        let reader = lock(&session, Role::Read(recipe)).acquire(soon().with_owner(&owner)).await.unwrap();
        let refused =
            lock(&session, Role::Write(recipe)).acquire(soon().with_owner(&owner)).await.unwrap_err();
        assert!(matches!(refused, AcquireError::UpgradeRefused { .. }), "{refused:?}");
        assert!(refused.to_string().contains("wait for each other"), "{refused}");
        reader.release().await.unwrap();
        let writer = lock(&session, Role::Write(recipe)).acquire(soon().with_owner(&owner)).await.unwrap();
        let reads = lock(&session, Role::Read(recipe)).acquire(soon().with_owner(&owner)).await.unwrap();
        assert!(matches!(writer.downgrade().await, Err(DowngradeError::Shared { .. })));
        reads.release().await.unwrap();
        place.is_empty_within(Duration::from_secs(2)).await;
    }
}

/// An owner whose lock was lost queues like everyone else.
#[tokio::test]
async fn what_was_lost_is_not_entered_again() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let owner = Owner::new();
    let lost = lock(&session, FAIR).acquire(soon().with_owner(&owner)).await.unwrap();
    place.outsider.delete(&lost.node(), None).await.unwrap();
    assert_eq!(lost.lost().await, Lost::NodeDeleted);
    let next = lock(&session, FAIR).acquire(Acquire::within(SOON).with_owner(&owner)).await.unwrap();
    assert!(next.token() > lost.token());
    drop(lost);
    assert_eq!(next.check(), Ok(()));
    let again = lock(&session, FAIR).acquire(Acquire::within(SOON).with_owner(&owner)).await.unwrap();
    assert_eq!(again.token(), next.token(), "dropping the lost guard did not make the owner forget the next");
}
