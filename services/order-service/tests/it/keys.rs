//! The same key: the same reply, one order.

use std::{future::Future, time::Duration};

use futures::future::join_all;
use serde_json::json;
use stack::Fleet;
use zk_locks::{Acquire, Inspector, Recipe, Session, SessionConfig};

use crate::support::{PATIENCE, Reply, World, clients, until};

#[tokio::test]
async fn a_retry_gets_the_first_reply_byte_for_byte_from_any_replica() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 2).await;
    let clients = clients(&fleet);
    clients[0].set("a", 2).await;
    let first = clients[0].order(&[("a", 1)], Some("k1")).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (201, None));
    for client in &clients {
        let again = client.order(&[("a", 1)], Some("k1")).await;
        assert_eq!((again.status, &again.text), (201, &first.text));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.header("content-type"), Some("application/json"));
    }
    // Another body that means the same is the same request; one that does not is refused.
    let body = r#" { "lines" : [ {"quantity":1, "sku":"a"} ] } "#.to_owned();
    let spaced = clients[1].try_send("POST", "/orders", Some(body), &[("Idempotency-Key", "k1")]).await;
    assert_eq!(spaced.expect("a reply").text, first.text);
    let other = clients[1].order(&[("a", 2)], Some("k1")).await;
    assert_eq!((other.status, other.code()), (422, "idempotency-conflict"), "{other:?}");
    assert_eq!(other.json["order"], "not-placed");
    let restock = clients[1]
        .send("POST", "/stock/a/restock", Some(json!({"quantity": 1})), &[("Idempotency-Key", "k1")])
        .await;
    assert_eq!((restock.status, restock.code()), (422, "idempotency-conflict"));
    assert_eq!(clients[0].on_hand("a").await, 1);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_decided_refusal_stays_decided_and_an_undecided_one_does_not() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    let undecided = client.order(&[("a", 1)], Some("k1")).await;
    assert_eq!((undecided.status, undecided.code()), (404, "unknown-sku"));
    client.set("a", 0).await;
    let refused = client.order(&[("a", 1)], Some("k1")).await;
    assert_eq!((refused.status, refused.code()), (409, "out-of-stock"));
    client.set("a", 5).await;
    let again = client.order(&[("a", 1)], Some("k1")).await;
    assert_eq!((again.status, &again.text), (409, &refused.text));
    assert_eq!(again.header("content-type"), Some("application/problem+json"));
    assert_eq!(client.on_hand("a").await, 5);
}

#[tokio::test]
async fn a_restock_with_a_key_adds_once() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 0).await;
    for _ in 0..3 {
        let body = Some(json!({"quantity": 4}));
        let reply = client.send("POST", "/stock/a/restock", body, &[("Idempotency-Key", "r1")]).await;
        assert_eq!((reply.status, &reply.json["on_hand"]), (200, &json!(4)), "{reply:?}");
    }
    assert_eq!(client.on_hand("a").await, 4);
}

/// Storms of equal keys, in every mode: without a lock too, a key buys once.
#[tokio::test]
async fn a_storm_with_the_same_keys_makes_one_order_each() {
    for mode in ["zk-fair", "zk-simple", "none"] {
        let world = World::new().await;
        let fleet = world.fleet(mode, |config| config.replicas = 2).await;
        let clients = clients(&fleet);
        clients[0].set("a", 1000).await;
        clients[0].set("b", 1000).await;
        let sent = join_all((0..60_usize).map(|i| {
            let client = &clients[i % 2];
            let key = format!("key-{}", i % 5);
            async move { (i % 5, client.order(&[("b", 1), ("a", 2)], Some(&key)).await) }
        }));
        let replies = sent.await;
        for key in 0..5 {
            let of_key: Vec<_> = replies.iter().filter(|(k, _)| *k == key).map(|(_, reply)| reply).collect();
            for reply in &of_key {
                assert_eq!((reply.status, &reply.text), (201, &of_key[0].text), "{mode}");
            }
            let fresh = of_key.iter().filter(|reply| reply.header("idempotency-replayed").is_none()).count();
            assert_eq!(fresh, 1, "{mode}: exactly one of them placed the order");
        }
        assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 5, "{mode}");
        assert_eq!(
            world.scalar("SELECT -sum(delta)::bigint FROM ledger WHERE kind = 'order'").await,
            15,
            "{mode}"
        );
    }
}

/// Two requests with one key and different SKUs do not meet at a lock; they meet at the key.
#[tokio::test]
async fn one_key_with_two_bodies_at_once_buys_one_of_them() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 2).await;
    let clients = clients(&fleet);
    clients[0].set("a", 100).await;
    clients[0].set("b", 100).await;
    for round in 0..10 {
        let key = format!("key-{round}");
        let (first, second) = tokio::join!(
            clients[0].order(&[("a", 1)], Some(&key)),
            clients[1].order(&[("b", 1)], Some(&key))
        );
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "{first:?} {second:?}");
    }
    assert_eq!(clients[0].on_hand("a").await + clients[0].on_hand("b").await, 190);
    world.assert_sound().await;
}

/// Sends the same request to two replicas. Both have looked for an earlier one and wait for the lock; the first gets it,
/// the second does not before its deadline.
async fn second_gives_up<A, B>(world: &World, first: A, second: B) -> (Reply, Reply)
where
    A: Future<Output = Reply> + Send + 'static,
    B: Future<Output = Reply> + Send + 'static,
{
    let inspector = Inspector::connect(&world.zookeeper).await.expect("zookeeper");
    let queued = async |length| {
        until("the queue has its length", || async {
            inspector.lock("/locks/stock:a").await.is_ok_and(|lock| lock.entries.len() == length)
        })
        .await;
    };
    let config = SessionConfig::new(&world.zookeeper).expect("an address");
    let session = Session::start(config);
    let mutex = session.mutex(Recipe::Fair, "/locks/stock:a").expect("a path");
    let ahead = mutex.acquire(Acquire::within(PATIENCE)).await.expect("acquires");
    let first = tokio::spawn(first);
    queued(2).await;
    let between = tokio::spawn(async move { mutex.acquire(Acquire::within(PATIENCE)).await });
    queued(3).await;
    let second = tokio::spawn(second);
    queued(4).await;
    ahead.release().await.expect("released");
    let replies = (first.await.expect("no panic"), second.await.expect("no panic"));
    between.await.expect("no panic").expect("acquires").release().await.expect("released");
    session.close(PATIENCE).await.expect("closes");
    inspector.close().await;
    replies
}

async fn two_replicas(world: &World) -> Fleet {
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.lock_wait = Duration::from_secs(3);
    });
    fleet.await
}

/// Without its key the second would be told "not placed", and it is.
#[tokio::test]
async fn a_retry_that_gives_up_on_the_lock_says_what_its_key_came_to() {
    let world = World::new().await;
    let fleet = two_replicas(&world).await;
    let [first, second] = clients(&fleet).try_into().expect("two");
    first.set("a", 10).await;
    let watcher = first.clone();
    watcher.until_released().await;
    let order = |client: crate::support::Client| async move { client.order(&[("a", 1)], Some("k")).await };
    let (placed, retry) = second_gives_up(&world, order(first), order(second)).await;
    assert_eq!(placed.status, 201, "{placed:?}");
    assert_eq!((retry.status, &retry.text), (201, &placed.text));
    assert_eq!(watcher.on_hand("a").await, 9);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_cancellation_that_gives_up_on_the_lock_says_what_became_of_the_order() {
    let world = World::new().await;
    let fleet = two_replicas(&world).await;
    let [first, second] = clients(&fleet).try_into().expect("two");
    first.set("a", 10).await;
    let order = first.order(&[("a", 1)], None).await;
    let id = order.json["id"].as_str().expect("an id").to_owned();
    let watcher = first.clone();
    watcher.until_released().await;
    let cancel = |client: crate::support::Client| {
        let id = id.clone();
        async move { client.cancel(&id).await }
    };
    let (cancelled, again) = second_gives_up(&world, cancel(first), cancel(second)).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!((again.status, &again.text), (200, &cancelled.text));
    assert_eq!(watcher.on_hand("a").await, 10);
    world.assert_sound().await;
}

/// A transaction with the key is open: whether the wait ends by PostgreSQL's timeout or by the deadline, nobody knows.
#[tokio::test]
async fn a_key_that_is_being_used_is_not_denied() {
    let world = World::new().await;
    for (lock_wait, lock_timeout) in [(4000, "300"), (1000, "2900")] {
        let fleet = world.fleet("zk-fair", |config| {
            config.lock_wait = Duration::from_millis(lock_wait);
            config.extra_env = vec![
                ("ORDER_DB_LOCK_TIMEOUT_MS".into(), lock_timeout.into()),
                ("ORDER_DB_IDLE_IN_TRANSACTION_MS".into(), "2900".into()),
            ];
        });
        let fleet = fleet.await;
        let client = &clients(&fleet)[0];
        client.set("a", 10).await;
        let mut open = world.pool.begin().await.expect("a transaction");
        let keep = "INSERT INTO idempotency (key, request_hash, status, body) VALUES ('k', '', 409, '{}')";
        sqlx::query(keep).execute(&mut *open).await.expect("the key");
        let waits = client.order(&[("a", 1)], Some("k")).await;
        assert_eq!((waits.status, &waits.json["order"]), (503, &json!("unknown")), "{waits:?}");
        open.rollback().await.expect("the key is free");
        fleet.stop(PATIENCE).await;
    }
}
