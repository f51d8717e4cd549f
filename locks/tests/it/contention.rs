//! Several sessions want the same lock, and nothing fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use zk_locks::{Acquire, AcquireError};

use crate::support::{EXCLUSIVE, FAIR, Place, SIMPLE, SOON, lock, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_holds_at_a_time_and_tokens_rise() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let (inside, token) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicI64::new(0)));
        let mut contenders = JoinSet::new();
        for name in ["a", "b", "c"] {
            let session = place.session(name).await;
            for _ in 0..4 {
                let (lock, inside, token) = (lock(&session, role), Arc::clone(&inside), Arc::clone(&token));
                contenders.spawn(async move {
                    for _ in 0..10 {
                        let guard = lock.acquire(soon()).await.unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
                        let before = token.swap(guard.token(), Ordering::SeqCst);
                        assert!(before < guard.token(), "{before} then {}", guard.token());
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        assert_eq!(guard.check(), Ok(()));
                        inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    }
                });
            }
        }
        while let Some(contender) = contenders.join_next().await {
            contender.unwrap();
        }
        place.is_empty_within(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn the_fair_lock_serves_in_the_order_of_arrival() {
    let place = Place::new().await;
    let (first, second) = (place.session("first").await, place.session("second").await);
    let holder = lock(&first, FAIR).acquire(soon()).await.unwrap();
    assert_eq!(holder.position(), 0);
    let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
    let mut waiters = JoinSet::new();
    for arrival in 1..=8 {
        let session = if arrival % 2 == 0 { &first } else { &second };
        let (lock, order) = (lock(session, FAIR), order.clone());
        waiters.spawn(async move {
            let guard = lock.acquire(soon()).await.unwrap();
            order.send((arrival, guard.position())).unwrap();
            guard.release().await.unwrap();
        });
        // The next one comes when this one stands in the queue.
        place.wait_for_nodes(arrival + 1).await;
    }
    holder.release().await.unwrap();
    for arrival in 1..=8 {
        assert_eq!(served.recv().await, Some((arrival, arrival)), "(arrival, how many were ahead)");
    }
    while let Some(waiter) = waiters.join_next().await {
        waiter.unwrap();
    }
}

#[tokio::test]
async fn a_deadline_ends_the_wait_and_the_node() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let (holder, waiter) = (place.session("holder").await, place.session("waiter").await);
        let guard = lock(&holder, role).acquire(soon()).await.unwrap();
        let error =
            lock(&waiter, role).acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
        assert!(matches!(error, AcquireError::Timeout { position: Some(1), .. }), "{error:?}");
        assert!(!error.is_retryable());
        place.wait_for_nodes(1).await;
        assert_eq!(guard.check(), Ok(()), "the holder is not disturbed");
        guard.release().await.unwrap();
        place.is_empty_within(Duration::ZERO).await;
    }
}

/// Case 16: each failed try leaked a node.
#[tokio::test]
async fn failed_tries_leave_nothing() {
    for (role, tries) in [(FAIR, 2_000), (SIMPLE, 500)] {
        let place = Place::new().await;
        let (holder, other) = (place.session("holder").await, place.session("other").await);
        let guard = lock(&holder, role).try_acquire(soon()).await.unwrap();
        let mut trying = JoinSet::new();
        for _ in 0..16 {
            let lock = lock(&other, role);
            trying.spawn(async move {
                for _ in 0..tries / 16 {
                    let error = lock.try_acquire(soon()).await.unwrap_err();
                    assert!(matches!(error, AcquireError::Busy { .. }), "{error:?}");
                }
            });
        }
        while let Some(tried) = trying.join_next().await {
            tried.unwrap();
        }
        assert_eq!(place.nodes().await.len(), 1, "the holder's node alone");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_watches_of_waiters_are_taken_back() {
    let place = Place::new().await;
    let zookeeper =
        stack::ZooKeeper::start(place.servers.dir(), stack::ZooKeeperConfig::default()).await.unwrap();
    let connect = zookeeper.connect_string("/watches");
    let session = crate::support::connected(crate::support::config(&connect, "waiter")).await;
    let baseline = zookeeper.watch_count().await.unwrap();
    for role in EXCLUSIVE {
        let mutex = lock(&session, role);
        let guard = mutex.acquire(soon()).await.unwrap();
        let waits = (0..20).map(|_| mutex.acquire(Acquire::within(Duration::from_millis(200))));
        for ended in futures::future::join_all(waits).await {
            ended.unwrap_err();
        }
        guard.release().await.unwrap();
        crate::support::eventually(
            SOON,
            async || zookeeper.watch_count().await.unwrap() == baseline,
            "the watch count is back at its baseline",
        )
        .await;
    }
}
