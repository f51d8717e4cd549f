//! A holder that is gone frees the lock for the other library too.

use zk_locks::Lost;

use super::peer::Peer;
use crate::support::{FAIR, Place, lock, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_session_ends_and_they_go_on() {
    let place = Place::new().await;
    let path = place.directory();
    for (peer, kind) in [(Peer::curator(&place).await, "mutex"), (Peer::kazoo(&place).await, "lock")] {
        let session = place.session("ours").await;
        let mut hand = peer.hand(kind);
        let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
        hand.queue(kind, &path);
        place.wait_for_nodes(2).await;
        session.expire().await.unwrap();
        assert_eq!(hand.answer().await, "held", "{kind}");
        assert_eq!(guard.lost().await, Lost::SessionExpired, "we know of it");
        hand.release(kind, &path).await;
    }
}

/// Killed, not closed: its session ends by its timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_killed_and_we_go_on() {
    let place = Place::new().await;
    let path = place.directory();
    let session = place.session("ours").await;
    for (peer, kind) in [(Peer::curator(&place).await, "mutex"), (Peer::kazoo(&place).await, "lock")] {
        let mut hand = peer.hand(kind);
        hand.acquire(kind, &path).await;
        peer.kill().await;
        lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
    }
}
