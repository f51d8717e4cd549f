//! Semaphores and multi-locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stack::Cut;
use tokio::task::JoinSet;
use tokio::time::Instant;
use zk_locks::{Acquire, AcquireError, MultiLock, Recipe, RwRecipe, Semaphore, Session};

use crate::support::{Place, SOON, eventually, soon};

fn semaphore(session: &Session, limit: u32) -> Semaphore {
    session.semaphore("/permits", limit).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_permits_are_held_than_there_are() {
    let place = Place::new().await;
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut visitors = JoinSet::new();
    for name in ["a", "b"] {
        let session = place.session(name).await;
        for _ in 0..5 {
            let (semaphore, inside, most) = (semaphore(&session, 3), Arc::clone(&inside), Arc::clone(&most));
            visitors.spawn(async move {
                for _ in 0..6 {
                    let permit = semaphore.acquire(soon()).await.unwrap();
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now <= 3, "{now} inside");
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    permit.release().await.unwrap();
                }
            });
        }
    }
    while let Some(visitor) = visitors.join_next().await {
        visitor.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3, "all permits were used");
}

/// Case 22: a raised limit lets a blocked waiter in within a second.
#[tokio::test]
async fn a_raised_limit_is_noticed_by_those_who_wait() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let semaphore = semaphore(&session, 1);
    let first = semaphore.acquire(soon()).await.unwrap();
    for limit in [2, 3] {
        let waiter = tokio::spawn({
            let semaphore = semaphore.clone();
            async move { semaphore.acquire(soon()).await.map(|permit| (Instant::now(), permit)) }
        });
        let busy = semaphore.acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
        assert!(matches!(busy, AcquireError::Timeout { .. }), "{busy:?}");
        assert!(!waiter.is_finished());
        let raised = Instant::now();
        semaphore.set_limit(limit).await.unwrap();
        let (entered, permit) = waiter.await.unwrap().unwrap();
        assert!(entered - raised < Duration::from_secs(1), "{:?}", entered - raised);
        // Stays inside, so that the next limit has to be raised again.
        std::mem::forget(permit);
    }
    semaphore.set_limit(1).await.unwrap();
    assert!(matches!(semaphore.try_acquire(soon()).await, Err(AcquireError::Busy { .. })));
    assert_eq!(first.check(), Ok(()), "a lowered limit takes nothing away");
    session.close(SOON).await.unwrap();
}

/// Case 21: after a minute of flapping connections (here: many flaps in less) all permits can be had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_do_not_dry_up_under_flaps() {
    const PERMITS: u32 = 4;
    let place = Place::new().await;
    let (flapping, proxy) = place.proxied("flapping").await;
    let mut visitors = JoinSet::new();
    for _ in 0..8 {
        let semaphore = semaphore(&flapping, PERMITS);
        visitors.spawn(async move {
            loop {
                if let Ok(permit) = semaphore.acquire(Acquire::within(Duration::from_secs(2))).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    drop(permit);
                }
            }
        });
    }
    for flap in 0..60 {
        proxy.drop_connections(if flap % 2 == 0 { Cut::Fin } else { Cut::Reset }).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    visitors.shutdown().await;
    let steady = place.session("steady").await;
    let all = (0..PERMITS).map(|_| {
        let semaphore = semaphore(&steady, PERMITS);
        async move { semaphore.acquire(soon()).await.unwrap() }
    });
    assert_eq!(futures::future::join_all(all).await.len(), PERMITS as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_finds_a_free_permit() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let semaphore = semaphore(&session, 1);
    let permit = semaphore.try_acquire(soon()).await.unwrap();
    assert!(matches!(semaphore.try_acquire(soon()).await, Err(AcquireError::Busy { .. })));
    permit.release().await.unwrap();
    eventually(SOON, async || semaphore.try_acquire(soon()).await.is_ok(), "the permit is free again").await;
}

fn basket(session: &Session, paths: &[&str]) -> MultiLock {
    MultiLock::new(paths.iter().map(|path| session.mutex(Recipe::Fair, path).unwrap())).unwrap()
}

/// Case 23: five locks in opposite orders, many times, and no deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_orders_do_not_deadlock() {
    let place = Place::new().await;
    let forth = ["/locks/a", "/locks/b", "/locks/c", "/locks/d", "/locks/e"];
    let back: Vec<&str> = forth.iter().rev().copied().collect();
    let mut baskets = JoinSet::new();
    for (name, order) in [("forth", forth.to_vec()), ("back", back)] {
        let session = place.session(name).await;
        for _ in 0..3 {
            let basket = basket(&session, &order);
            baskets.spawn(async move {
                for _ in 0..10 {
                    let guard = basket.acquire(soon()).await.unwrap();
                    assert_eq!(guard.guards().len(), 5);
                    assert_eq!(guard.check(), Ok(()));
                    guard.release().await.unwrap();
                }
            });
        }
    }
    while let Some(basket) = baskets.join_next().await {
        basket.unwrap();
    }
}

#[tokio::test]
async fn all_or_nothing() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let middle = session.mutex(Recipe::Fair, "/locks/b").unwrap().acquire(soon()).await.unwrap();
    let three = basket(&session, &["/locks/c", "/locks/a", "/locks/b"]);
    let error = three.acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(&error, AcquireError::Timeout { path, .. } if path == "/locks/b"), "{error:?}");
    // What was acquired before the failure is free again.
    session.mutex(Recipe::Fair, "/locks/a").unwrap().acquire(soon()).await.unwrap().release().await.unwrap();
    middle.release().await.unwrap();
    let guard = three.acquire(soon()).await.unwrap();
    assert_eq!(guard.guards().len(), 3);
    place.outsider.delete(&guard.guards()[1].node(), None).await.unwrap();
    tokio::time::timeout(SOON, guard.lost()).await.unwrap();
    assert_eq!(guard.check().unwrap_err().0, "/locks/b");
    guard.release().await.unwrap_err();
}

/// To leave one of them out could leave out the one that writes.
#[tokio::test]
async fn two_locks_on_one_path_are_refused() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let rw = session.rw_lock(RwRecipe::Fair, "/locks/a").unwrap();
    let error = MultiLock::new([rw.read_lock().clone(), rw.write_lock().clone()]).unwrap_err();
    assert_eq!(error.path, "/locks/a");
}

/// An operator who deletes the node of a waiter ends no session, and the error is about the semaphore.
#[tokio::test]
async fn a_waiter_whose_node_is_deleted_is_told_so() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let semaphore = semaphore(&session, 1);
    let held = semaphore.acquire(soon()).await.unwrap();
    let queue = format!("{}/permits/locks", place.chroot);
    let queued = async || place.outsider.list_children(&queue).await.unwrap_or_default();
    eventually(SOON, async || queued().await.is_empty(), "the holder has left the queue").await;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire(soon()).await }
    });
    eventually(SOON, async || queued().await.len() == 1, "it waits").await;
    place.outsider.delete(&format!("{queue}/{}", queued().await[0]), None).await.unwrap();
    let told = waiter.await.unwrap().unwrap_err();
    assert!(matches!(&told, AcquireError::NodeDeleted { path } if path == "/permits"), "{told:?}");
    held.release().await.unwrap();
}
