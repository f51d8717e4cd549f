//! What an operator sees.

use zk_locks::{Acquire, Inspector, Recipe};

use crate::support::{LOCK, Place, SOON, lock, soon};

/// Case 9: the blocker is named, with its session and since when.
#[tokio::test]
async fn holders_and_waiters_are_named_in_order() {
    let place = Place::new().await;
    let (first, second) = (place.session("first").await, place.session("second").await);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = Acquire::within(SOON).with_traceparent(traceparent).with_label("order 7");
    let guard = lock(&first, Recipe::Fair).acquire(request).await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock(&second, Recipe::Fair);
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
