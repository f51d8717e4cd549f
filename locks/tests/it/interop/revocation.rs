//! Asking a holder to let go, across libraries. kazoo knows no such question.

use zk_locks::{Revocation, Role, RwRecipe};

use super::peer::Peer;
use crate::support::{FAIR, Place, lock, soon};

#[tokio::test]
async fn a_holder_of_curator_hears_us() {
    let place = Place::new().await;
    let path = place.directory();
    let curator = Peer::curator(&place).await;
    let session = place.session("ours").await;
    let mut hand = curator.hand("c");
    hand.acquire("revocable", &path).await;
    let asked = Revocation { by: Some("ours".into()), reason: Some("a better use".into()) };
    assert!(lock(&session, FAIR).revoke(&asked).await.unwrap());
    assert_eq!(hand.ask("revoked").await, "revoked");
    hand.release("revocable", &path).await;
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn our_holder_hears_curator() {
    let place = Place::new().await;
    let curator = Peer::curator(&place).await;
    let session = place.session("ours").await;
    let mut hand = curator.hand("c");
    for role in [FAIR, Role::Write(RwRecipe::Fair)] {
        let guard = lock(&session, role).acquire(soon()).await.unwrap();
        assert_eq!(hand.ask(&format!("revoke {}", guard.node())).await, "asked");
        assert_eq!(guard.revoked().await, Revocation { by: None, reason: None });
        assert_eq!(guard.check(), Ok(()), "asking takes nothing away");
        guard.release().await.unwrap();
    }
}

/// A holder that does not listen, and one of kazoo, are not disturbed.
#[tokio::test]
async fn who_does_not_listen_is_not_disturbed() {
    let place = Place::new().await;
    let path = place.directory();
    let (curator, kazoo) = (Peer::curator(&place).await, Peer::kazoo(&place).await);
    let session = place.session("ours").await;
    for (peer, kind) in [(&curator, "mutex"), (&kazoo, "lock")] {
        let mut hand = peer.hand(kind);
        hand.acquire(kind, &path).await;
        let nobody = Revocation { by: None, reason: None };
        assert!(lock(&session, FAIR).revoke(&nobody).await.unwrap());
        place.wait_for_nodes(1).await;
        hand.release(kind, &path).await;
        place.wait_for_nodes(0).await;
    }
}
