//! Sessions end, leases run out, nodes are deleted: a loss is a value, and it comes in time.

use std::time::Duration;

use stack::Silence;
use tokio::time::Instant;
use zk_locks::{AcquireError, Lost, ReleaseError, Role, RwRecipe};

use crate::support::{EXCLUSIVE, FAIR, LOCK, Place, SIMPLE, SOON, info, lock, soon};

/// Cases 3, 7 and 8: the loss is told, and the next guard belongs to the next session.
#[tokio::test]
async fn a_holder_learns_that_its_session_expired() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let session = place.session("victim").await;
        let guard = lock(&session, role).acquire(soon()).await.unwrap();
        let first = info(&session).await;
        assert_eq!(guard.session_id(), first.id);
        assert_eq!(session.expire().await.unwrap(), first.id);
        assert_eq!(tokio::time::timeout(SOON, guard.lost()).await.unwrap(), Lost::SessionExpired);
        assert_eq!(guard.check(), Err(Lost::SessionExpired));
        let next = lock(&session, role).acquire(soon()).await.unwrap();
        assert_ne!(next.session_id(), first.id);
        // The outsider's server may be behind.
        place.outsider.sync(LOCK).await.unwrap();
        let (_, stat) = place.outsider.get_data(&next.node()).await.unwrap();
        assert_eq!(stat.ephemeral_owner, next.session_id(), "the node of a guard belongs to its session");
        assert!(next.token() > guard.token());
        assert_eq!(guard.check(), Err(Lost::SessionExpired), "what is lost stays lost");
        let error = guard.release().await.unwrap_err();
        assert_eq!(error, ReleaseError::Lost { path: LOCK.to_owned(), reason: Lost::SessionExpired });
        assert_eq!(next.check(), Ok(()), "releasing what is lost does not touch the next holder");
        next.release().await.unwrap();
    }
}

/// Cases 2 and 5: a waiter whose session ended is told at once, and the next one acquires.
#[tokio::test]
async fn a_waiter_learns_that_its_session_expired() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let (holder, victim, next) =
            (place.session("holder").await, place.session("victim").await, place.session("next").await);
        let guard = lock(&holder, role).acquire(soon()).await.unwrap();
        let waiter = tokio::spawn({
            let lock = lock(&victim, role);
            async move { lock.acquire(soon()).await }
        });
        let behind = tokio::spawn({
            let lock = lock(&next, role);
            async move { lock.acquire(soon()).await }
        });
        if role != SIMPLE {
            place.wait_for_nodes(3).await;
        }
        victim.expire().await.unwrap();
        let error = tokio::time::timeout(SOON, waiter).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, AcquireError::SessionLost { reason: Lost::SessionExpired, .. }), "{error:?}");
        assert!(error.is_retryable());
        guard.release().await.unwrap();
        behind.await.unwrap().unwrap().release().await.unwrap();
        place.is_empty_within(Duration::from_secs(2)).await;
    }
}

/// Case 15: releasing a node that vanished reports the loss, and does not delete again and again.
#[tokio::test]
async fn a_holder_learns_that_its_node_was_deleted() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let session = place.session("victim").await;
        let guard = lock(&session, role).acquire(soon()).await.unwrap();
        place.outsider.delete(&guard.node(), None).await.unwrap();
        assert_eq!(tokio::time::timeout(SOON, guard.lost()).await.unwrap(), Lost::NodeDeleted);
        let other = lock(&session, role).acquire(soon()).await.unwrap();
        let error = tokio::time::timeout(SOON, guard.release()).await.unwrap().unwrap_err();
        assert_eq!(error, ReleaseError::Lost { path: LOCK.to_owned(), reason: Lost::NodeDeleted });
        assert_eq!(other.check(), Ok(()));
        other.release().await.unwrap();
    }
}

/// Case 19: a waiter whose node is gone gets a typed error.
#[tokio::test]
async fn a_waiter_learns_that_its_node_was_deleted() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock(&session, FAIR);
        async move { lock.acquire(soon()).await }
    });
    place.wait_for_nodes(2).await;
    let own = guard.node();
    let nodes = place.nodes().await;
    let waiting = nodes.iter().find(|node| !own.ends_with(node.as_str())).unwrap();
    place.outsider.delete(&format!("{}/{waiting}", place.directory()), None).await.unwrap();
    let error = tokio::time::timeout(SOON, waiter).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::NodeDeleted { .. }), "{error:?}");
    assert_eq!(guard.check(), Ok(()));
}

/// The connection goes dead without a word. The holder must know before the next one is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_runs_out_before_another_can_hold() {
    for (role, silence) in [
        (FAIR, Silence::Both),
        (FAIR, Silence::Requests),
        (SIMPLE, Silence::Both),
        (Role::Write(RwRecipe::Fair), Silence::Both),
        (Role::Write(RwRecipe::Broadcast), Silence::Requests),
    ] {
        let place = Place::new().await;
        let (victim, proxy) = place.proxied("victim").await;
        let other = place.session("other").await;
        let guard = lock(&victim, role).acquire(soon()).await.unwrap();
        let next = tokio::spawn({
            let lock = lock(&other, role);
            async move {
                let guard = lock.acquire(soon()).await.unwrap();
                (Instant::now(), guard)
            }
        });
        if role != SIMPLE {
            place.wait_for_nodes(2).await;
        }
        proxy.silence(silence).unwrap();
        let lost = tokio::spawn(async move {
            let reason = guard.lost().await;
            (Instant::now(), reason, guard)
        });
        let (lost_at, reason, _guard) = tokio::time::timeout(SOON, lost).await.unwrap().unwrap();
        let (held_at, _next) = tokio::time::timeout(SOON, next).await.unwrap().unwrap();
        assert_eq!(reason, Lost::LeaseRunOut);
        assert!(lost_at < held_at, "lost {:?} after the other held", lost_at - held_at);
    }
}

/// A short outage that the session survives is no loss.
#[tokio::test]
async fn a_reconnect_within_the_lease_is_no_loss() {
    let place = Place::new().await;
    let (session, proxy) = place.proxied("one").await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    for how in [stack::Cut::Fin, stack::Cut::Reset] {
        proxy.drop_connections(how).unwrap();
        let lost = tokio::time::timeout(Duration::from_secs(3), guard.lost()).await;
        assert!(lost.is_err(), "lost by {how:?}: {lost:?}");
        assert_eq!(guard.check(), Ok(()));
    }
    guard.release().await.unwrap();
    place.is_empty_within(Duration::ZERO).await;
}

/// A holder whose session is closed by its own process is told.
#[tokio::test]
async fn closing_ends_what_is_still_held() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    session.close(SOON).await.unwrap();
    assert_eq!(guard.check(), Err(Lost::Closed));
    assert_eq!(guard.lost().await, Lost::Closed);
    place.is_empty_within(Duration::from_secs(1)).await;
}
