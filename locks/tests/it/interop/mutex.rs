//! The fair mutex with Curator's `InterProcessMutex` and kazoo's `Lock`: who is kept out, and who is next.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::task::JoinHandle;
use zk_locks::{Acquire, AcquireError, Guard, Session};

use super::peer::{Hand, Peer};
use crate::support::{FAIR, LOCK, Place, SOON, lock, soon};

/// Each holds while the other tries and then waits, in both directions.
async fn exclude_each_other(place: &Place, peer: &Peer, kind: &str) {
    let path = place.directory();
    let (session, mut hand) = (place.session("ours").await, peer.hand(kind));
    let ours = lock(&session, FAIR);

    let guard = ours.acquire(soon()).await.unwrap();
    assert!(!hand.can_acquire(kind, &path).await, "{kind} came in beside us");
    place.wait_for_nodes(1).await;
    hand.queue(kind, &path);
    place.wait_for_nodes(2).await;
    assert!(hand.is_silent(), "{kind}");
    guard.release().await.unwrap();
    assert_eq!(hand.answer().await, "held", "{kind}");

    let busy = ours.try_acquire(soon()).await.unwrap_err();
    assert!(matches!(busy, AcquireError::Busy { .. }), "{kind}: {busy:?}");
    let late = ours.acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(late, AcquireError::Timeout { position: Some(1), .. }), "{kind}: {late:?}");
    let waiter = queue(&session);
    place.wait_for_nodes(2).await;
    assert!(!waiter.is_finished(), "{kind}");
    hand.release(kind, &path).await;
    waiter.await.unwrap().release().await.unwrap();
    place.is_empty_within(Duration::ZERO).await;
}

fn queue(session: &Session) -> JoinHandle<Guard> {
    let lock = lock(session, FAIR);
    tokio::spawn(async move { lock.acquire(soon()).await.unwrap() })
}

#[tokio::test]
async fn curator_and_ours_exclude_each_other() {
    let place = Place::new().await;
    let curator = Peer::curator(&place).await;
    exclude_each_other(&place, &curator, "mutex").await;
    exclude_each_other(&place, &curator, "revocable").await;
}

#[tokio::test]
async fn kazoo_and_ours_exclude_each_other() {
    let place = Place::new().await;
    let kazoo = Peer::kazoo(&place).await;
    exclude_each_other(&place, &kazoo, "lock").await;
    exclude_each_other(&place, &kazoo, "curator-lock").await;
}

/// What the migration page warns of. Where one of these fails, the page has to be changed.
#[tokio::test]
async fn who_does_not_know_the_names_comes_in() {
    let place = Place::new().await;
    let path = place.directory();
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let (mut c, mut k) = (curator.hand("c"), kazoo.hand("k"));
    let session = place.session("ours").await;

    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    assert!(k.can_acquire("bare-lock", &path).await, "kazoo without a pattern does not see us");
    guard.release().await.unwrap();

    k.acquire("lock", &path).await;
    assert!(c.can_acquire("mutex", &path).await, "Curator sees no node that kazoo names");
    let busy = lock(&session, FAIR).try_acquire(soon()).await.unwrap_err();
    assert!(matches!(busy, AcquireError::Busy { .. }), "we do: {busy:?}");
    k.release("lock", &path).await;

    c.acquire("mutex", &path).await;
    assert!(!k.can_acquire("lock", &path).await, "kazoo with a pattern sees Curator");
    c.release("mutex", &path).await;

    k.acquire("curator-lock", &path).await;
    assert!(!c.can_acquire("mutex", &path).await, "it sees those that kazoo names as Curator does");
    k.release("curator-lock", &path).await;
}

/// Curator and kazoo can have the token too, so that a fence can be set up before the last of them is gone; and
/// an operator sees them.
#[tokio::test]
async fn tokens_rise_from_library_to_library() {
    let place = Place::new().await;
    let path = place.directory();
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let (mut c, mut k, mut k2) = (curator.hand("c"), kazoo.hand("k"), kazoo.hand("k2"));
    let session = place.session("ours").await;
    let inspector = session.inspector().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        for (hand, kind) in [(&mut c, "mutex"), (&mut k, "lock"), (&mut k2, "curator-lock")] {
            let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
            assert!(guard.token() > last, "{} after {last}", guard.token());
            last = guard.token();
            guard.release().await.unwrap();

            hand.acquire(kind, &path).await;
            let token: i64 = hand.ask(&format!("token {kind} {path}")).await.parse().unwrap();
            assert!(token > last, "{token} of {kind} after {last}");
            last = token;
            let holder = inspector.holder(LOCK).await.unwrap().unwrap();
            assert_eq!((holder.token, holder.instance), (token, None), "{kind}");
            assert_ne!(holder.session_id, 0);
            hand.release(kind, &path).await;
        }
    }
}

/// One in the queue.
enum Waiter {
    Ours(JoinHandle<Guard>),
    Theirs(Hand, &'static str),
}

/// All three wait in one queue, and are served in the order in which they came.
#[tokio::test]
async fn first_come_first_served_whoever_it_is() {
    let place = Place::new().await;
    let path = place.directory();
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let session = place.session("ours").await;
    let holder = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let mut queued = VecDeque::new();
    // Each stands once right before and once right behind each of the others.
    for (arrival, library) in ["c", "o", "k", "c", "k", "o", "c"].into_iter().enumerate() {
        let name = format!("{library}{arrival}");
        queued.push_back(match library {
            "o" => Waiter::Ours(queue(&session)),
            "c" => Waiter::Theirs(curator.hand(&name), "mutex"),
            _ => Waiter::Theirs(kazoo.hand(&name), "curator-lock"),
        });
        if let Some(Waiter::Theirs(hand, kind)) = queued.back() {
            hand.queue(kind, &path);
        }
        // The next one comes when this one stands in the queue.
        place.wait_for_nodes(arrival + 2).await;
    }
    holder.release().await.unwrap();
    while let Some(next) = queued.pop_front() {
        let all_wait = |queued: &VecDeque<Waiter>| {
            queued.iter().all(|waiter| match waiter {
                Waiter::Ours(guard) => !guard.is_finished(),
                Waiter::Theirs(hand, _) => hand.is_silent(),
            })
        };
        match next {
            Waiter::Ours(guard) => {
                let guard = tokio::time::timeout(SOON, guard).await.unwrap().unwrap();
                assert!(all_wait(&queued), "{} behind us", queued.len());
                guard.release().await.unwrap();
            }
            Waiter::Theirs(mut hand, kind) => {
                assert_eq!(hand.answer().await, "held");
                assert!(all_wait(&queued), "{} behind {kind}", queued.len());
                hand.release(kind, &path).await;
            }
        }
    }
    place.is_empty_within(Duration::ZERO).await;
}
