//! Futures are dropped at any await; nothing stays behind.

use std::time::Duration;

use zk_locks::Acquire;

use crate::support::{EXCLUSIVE, FAIR, Place, SOON, lock, soon};

#[tokio::test]
async fn a_waiter_that_is_dropped_lets_those_behind_pass() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let mutex = lock(&session, FAIR);
    let holder = mutex.acquire(soon()).await.unwrap();
    let dropped = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire(soon()).await }
    });
    place.wait_for_nodes(2).await;
    let behind = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire(soon()).await }
    });
    place.wait_for_nodes(3).await;
    dropped.abort();
    place.wait_for_nodes(2).await;
    assert!(!behind.is_finished(), "the holder is still inside");
    holder.release().await.unwrap();
    let guard = behind.await.unwrap().unwrap();
    assert_eq!(guard.check(), Ok(()));
}

#[tokio::test]
async fn dropping_a_guard_releases() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let session = place.session("one").await;
        drop(lock(&session, role).acquire(soon()).await.unwrap());
        lock(&session, role).acquire(Acquire::within(SOON)).await.unwrap().release().await.unwrap();
        place.is_empty_within(Duration::ZERO).await;
    }
}

/// The removal has begun when the release is first polled, so that dropping it changes nothing.
#[tokio::test]
async fn a_release_that_is_dropped_goes_on() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let released = tokio::time::timeout(Duration::ZERO, guard.release()).await;
    assert!(released.is_err(), "a delete takes longer than nothing");
    place.is_empty_within(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn closing_the_session_waits_for_removals() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let mutex = lock(&session, FAIR);
    for _ in 0..20 {
        drop(mutex.acquire(soon()).await.unwrap());
    }
    session.close(SOON).await.unwrap();
    place.is_empty_within(Duration::ZERO).await;
    let error = mutex.acquire(soon()).await.unwrap_err();
    assert_eq!(error.as_str(), "closed");
}
