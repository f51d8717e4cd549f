//! What an operator sees.

use std::sync::Arc;

use zk_locks::{Acquire, Inspector, Lost, Revocation, Role, RwRecipe, Statistics};

use crate::support::{FAIR, LOCK, Place, SIMPLE, SOON, config, connected, lock, soon};

/// Case 9: the blocker is named, with its session and since when.
#[tokio::test]
async fn holders_and_waiters_are_named_in_order() {
    let place = Place::new().await;
    let (first, second) = (place.session("first").await, place.session("second").await);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = Acquire::within(SOON).with_traceparent(traceparent).with_label("order 7");
    let guard = lock(&first, FAIR).acquire(request).await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock(&second, FAIR);
        async move { lock.acquire(soon()).await }
    });
    place.wait_for_nodes(2).await;
    let inspector = Inspector::connect(&place.connect).await.unwrap();
    let locks = inspector.locks("/locks").await.unwrap();
    assert_eq!(locks.len(), 1);
    assert_eq!(locks[0].path, LOCK);
    let [holder, waiting] = locks[0].entries.as_slice() else { panic!("{locks:?}") };
    assert_eq!((holder.position, holder.token), (0, guard.token()));
    assert_eq!(holder.session_id, guard.session_id());
    assert_eq!(holder.instance.as_deref(), Some("first"));
    assert_eq!(holder.traceparent.as_deref(), Some(traceparent));
    assert_eq!(holder.label.as_deref(), Some("order 7"));
    assert_eq!((waiting.position, waiting.instance.as_deref()), (1, Some("second")));
    assert!(waiting.since >= holder.since);
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    assert!(inspector.lock(LOCK).await.unwrap().entries.is_empty());
    inspector.close().await;
}

/// Between two holders' tokens lies what the ensemble says of itself, and the question leaves nothing.
#[tokio::test]
async fn the_token_of_now_is_between_those_before_and_after() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let inspector = Inspector::connect(&place.connect).await.unwrap();
    let before = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let now = inspector.token_now().await.unwrap();
    let earlier = before.token();
    before.release().await.unwrap();
    let after = lock(&session, FAIR).acquire(soon()).await.unwrap();
    assert!(earlier < now && now < after.token(), "{earlier} < {now} < {}", after.token());
    after.release().await.unwrap();
    let left = inspector.locks("/").await.unwrap();
    assert!(left.iter().all(|lock| !lock.path.contains("token")), "{left:?}");
    inspector.close().await;
}

/// Case 9: a stale lowest child blocks everyone until an operator removes it.
#[tokio::test]
async fn an_operator_can_remove_a_stale_node() {
    let place = Place::new().await;
    let session = place.session("one").await;
    let stale = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock(&session, FAIR);
        async move { lock.acquire(soon()).await }
    });
    place.wait_for_nodes(2).await;
    let inspector = Inspector::connect(&place.connect).await.unwrap();
    let holder = inspector.holder(LOCK).await.unwrap().unwrap();
    assert!(
        !inspector.remove(LOCK, &holder.node, holder.token + 1).await.unwrap(),
        "another token, another node"
    );
    assert!(inspector.remove(LOCK, &holder.node, holder.token).await.unwrap());
    assert!(!inspector.remove(LOCK, &holder.node, holder.token).await.unwrap(), "it is gone");
    let next = waiter.await.unwrap().unwrap();
    assert_eq!(stale.lost().await, Lost::NodeDeleted);
    assert!(next.token() > stale.token());
}

#[tokio::test]
async fn a_holder_hears_that_it_is_asked_to_let_go() {
    for role in [FAIR, SIMPLE, Role::Write(RwRecipe::Fair), Role::Read(RwRecipe::Broadcast)] {
        let place = Place::new().await;
        let (holder, asker) = (place.session("holder").await, place.session("asker").await);
        let wish = Revocation { by: Some("asker".to_owned()), reason: Some("maintenance".to_owned()) };
        assert!(!lock(&asker, role).revoke(&wish).await.unwrap(), "nobody holds");
        let guard = lock(&holder, role).acquire(soon()).await.unwrap();
        assert!(lock(&asker, role).revoke(&wish).await.unwrap());
        assert_eq!(tokio::time::timeout(SOON, guard.revoked()).await.unwrap(), wish);
        assert_eq!(guard.check(), Ok(()), "asking takes nothing away");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn statistics_count_each_attempt_once() {
    let place = Place::new().await;
    let statistics = Arc::new(Statistics::new());
    let observed = config(&place.connect, "observed").with_observer(Arc::clone(&statistics) as _);
    let session = connected(observed).await;
    let mutex = lock(&session, FAIR);
    let guard = mutex.acquire(soon()).await.unwrap();
    mutex.acquire(Acquire::within(std::time::Duration::from_millis(50))).await.unwrap_err();
    mutex.try_acquire(soon()).await.unwrap_err();
    drop(tokio::time::timeout(std::time::Duration::from_millis(50), mutex.acquire(soon())).await);
    let seen = statistics.of(FAIR);
    assert_eq!((seen.acquired, seen.failed, seen.timed_out, seen.cancelled), (1, 2, 1, 1));
    assert_eq!((seen.held, seen.waiting, seen.released), (1, 0, 0));
    place.outsider.delete(&guard.node(), None).await.unwrap();
    guard.lost().await;
    guard.release().await.unwrap_err();
    let seen = statistics.of(FAIR);
    assert_eq!(seen.lost, [("node-deleted", 1)].into());
    assert_eq!((seen.held, seen.released, seen.failed_releases, seen.holds.total()), (0, 1, 1, 1));
}
