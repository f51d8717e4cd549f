//! The semaphore with Curator's `InterProcessSemaphoreV2`: one number of permits for both.

use std::time::Duration;

use tokio::task::JoinSet;
use zk_locks::{Acquire, AcquireError};

use super::peer::Peer;
use super::witness::{Rule, contend, room, tell};
use crate::support::{Place, soon};

const OURS: &str = "/permits";

#[tokio::test]
async fn permits_are_counted_together() {
    let place = Place::new().await;
    let path = format!("{}{OURS}", place.chroot);
    let curator = Peer::curator(&place).await;
    let semaphore = place.session("ours").await.semaphore(OURS, 2).unwrap();
    let (mut one, mut two) = (curator.hand("one"), curator.hand("two"));

    let ours = semaphore.acquire(soon()).await.unwrap();
    one.acquire("permit-2", &path).await;
    assert!(matches!(semaphore.try_acquire(soon()).await, Err(AcquireError::Busy { .. })));
    assert!(!two.can_acquire("permit-2", &path).await, "a third permit of two");
    two.queue("permit-2", &path);
    ours.release().await.unwrap();
    assert_eq!(two.answer().await, "held");

    let late = semaphore.acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(late, AcquireError::Timeout { .. }), "{late:?}");
    let waiter = tokio::spawn(async move { semaphore.acquire(soon()).await.unwrap() });
    one.release("permit-2", &path).await;
    let ours = waiter.await.unwrap();
    two.release("permit-2", &path).await;
    ours.release().await.unwrap();
}

/// Curator's `InterProcessSemaphoreMutex` is its semaphore with one permit, and so it is ours.
#[tokio::test]
async fn the_semaphore_mutex_is_one_permit() {
    let place = Place::new().await;
    let path = format!("{}{OURS}", place.chroot);
    let curator = Peer::curator(&place).await;
    let semaphore = place.session("ours").await.semaphore(OURS, 1).unwrap();
    let mut hand = curator.hand("c");
    let ours = semaphore.acquire(soon()).await.unwrap();
    assert!(!hand.can_acquire("semaphore-mutex", &path).await);
    ours.release().await.unwrap();
    hand.acquire("semaphore-mutex", &path).await;
    assert!(matches!(semaphore.try_acquire(soon()).await, Err(AcquireError::Busy { .. })));
    hand.release("semaphore-mutex", &path).await;
}

/// The limit that `set_limit` writes is what Curator's `SharedCount` reads, and the reverse.
#[tokio::test]
async fn a_changed_limit_is_heard_on_both_sides() {
    let place = Place::new().await;
    let path = format!("{}{OURS}", place.chroot);
    let curator = Peer::curator(&place).await;
    let semaphore = place.session("ours").await.semaphore(OURS, 1).unwrap();
    semaphore.set_limit(1).await.unwrap();
    let mut hand = curator.hand("c");

    let ours = semaphore.acquire(soon()).await.unwrap();
    assert!(!hand.can_acquire("permit-shared", &path).await, "a second permit of one");
    hand.queue("permit-shared", &path);
    semaphore.set_limit(2).await.unwrap();
    assert_eq!(hand.answer().await, "held");

    let waiter = tokio::spawn(async move { semaphore.acquire(soon()).await.unwrap() });
    assert!(!waiter.is_finished());
    assert_eq!(hand.ask(&format!("limit {path} 3")).await, "set");
    waiter.await.unwrap().release().await.unwrap();
    hand.release("permit-shared", &path).await;
    ours.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_are_inside_than_there_are_permits() {
    const LIMIT: usize = 2;
    const TURNS: usize = 10;
    let place = Place::new().await;
    let path = format!("{}{OURS}", place.chroot);
    let curator = Peer::curator(&place).await;
    let (session, room) = (place.session("ours").await, room(&place).await);
    let mut contenders = JoinSet::new();
    for _ in 0..3 {
        let semaphore = session.semaphore(OURS, 2).unwrap();
        contenders.spawn(contend(
            semaphore,
            Rule::AtMost(LIMIT),
            TURNS,
            room.clone(),
            place.outsider.clone(),
        ));
    }
    for name in ["c0", "c1", "c2"] {
        let mut hand = curator.hand(name);
        tell(&hand, "permit-2", &path, TURNS, &room);
        contenders.spawn(async move { hand.answer().await });
    }
    let came_to = contenders.join_all().await;
    assert!(came_to.iter().all(|it| it == "done"), "{came_to:?}");
}
