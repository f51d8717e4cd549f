//! Holders that were overtaken.

use std::{collections::BTreeMap, time::Duration};

use order_service::{
    config::Config,
    domain::{Command, OnHand, Sku},
    store::{Decided, Entry, Gate, Reply, Store, WriteError, Writing, Written},
};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Client, World, clients, until, until_held};

const LONG: Duration = Duration::from_secs(25);

/// Freezes a holder in the middle of its work for longer than its session, sells to others, and wakes it.
/// Returns its answer.
async fn overtaken(world: &World, writer: &str) -> crate::support::Reply {
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.writer = writer.into();
        config.lock_wait = LONG;
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    clients[0].set_work(1500).await;
    let holder = clients[0].clone();
    let stale = tokio::spawn(async move { holder.order(&[("a", 1)], None).await });
    assert_eq!(until_held(&world.zookeeper, "a").await, fleet.replicas()[0].name());
    // The plain writer reads before its work: give it the time.
    until("the work has begun", || async {
        world.scalar("SELECT count(*) FROM stock WHERE on_hand = 10").await == 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    fleet.replicas()[0].child().pause();
    for _ in 0..3 {
        assert_eq!(clients[1].order(&[("a", 1)], None).await.status, 201);
    }
    fleet.replicas()[0].child().resume();
    let stale = stale.await.expect("no panic");
    assert_eq!(clients[1].order(&[("a", 1)], None).await.status, 201);
    stale
}

/// Case 1.
#[tokio::test]
async fn a_frozen_holder_is_refused_by_the_fence() {
    let world = World::new().await;
    let stale = overtaken(&world, "fenced").await;
    assert_eq!((stale.status, stale.code()), (503, "fenced-out"), "{stale:?}");
    assert_eq!((&stale.json["order"], stale.header("retry-after")), (&json!("not-placed"), Some("1")));
    assert!(stale.json["token"].as_i64() < stale.json["fence"].as_i64(), "{stale:?}");
    assert_eq!(world.scalar("SELECT on_hand FROM stock").await, 6);
    until("the incident is recorded", || async {
        world
            .scalar("SELECT count(*) FROM incidents WHERE kind = 'fenced-out' AND reason = 'overtaken'")
            .await
            == 1
    })
    .await;
    world.assert_sound().await;
}

/// Case 1, the other half: the danger is real, and the audit finds it.
#[tokio::test]
async fn a_frozen_holder_with_the_plain_writer_sells_units_twice() {
    let world = World::new().await;
    let stale = overtaken(&world, "plain").await;
    assert_eq!(stale.status, 201, "{stale:?}");
    // Five orders of one unit, and two units gone: what was computed before the pause won.
    assert_eq!(world.scalar("SELECT on_hand FROM stock").await, 8);
    assert_eq!(world.scalar("SELECT difference FROM audit_stock_balance").await, 3);
    assert_eq!(world.scalar("SELECT count(*) FROM audit_token_regressions").await, 1);
}

#[tokio::test]
async fn a_session_that_expires_during_the_work_ends_the_order() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    client.set_work(4000).await;
    let ordering = client.clone();
    let order = tokio::spawn(async move { ordering.order(&[("a", 1)], None).await });
    until_held(&world.zookeeper, "a").await;
    let expired = client.expire_session().await;
    assert!(expired.json["session"].is_string() && expired.json["expired_at"].is_string());
    let order = order.await.expect("no panic");
    assert_eq!((order.status, order.code()), (503, "lock-lost"), "{order:?}");
    assert_eq!(order.json["order"], "not-placed");
    client.set_work(0).await;
    // The session is rebuilt and registered again.
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    assert_eq!(client.on_hand("a").await, 9);
    until("the incident is recorded", || async {
        world.scalar("SELECT count(*) FROM incidents WHERE kind = 'lock-lost' AND token IS NOT NULL").await
            == 1
    })
    .await;
    world.assert_sound().await;
}

/// A place in the queue that is lost with its session is taken again, in the rebuilt one, within the same deadline.
#[tokio::test]
async fn a_session_that_expires_in_the_queue_costs_only_the_place() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 2).await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    clients[0].set_work(3000).await;
    let spawn = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { client.order(&[("a", 1)], None).await })
    };
    let holder = spawn(&clients[0]);
    until_held(&world.zookeeper, "a").await;
    let waiter = spawn(&clients[1]);
    until("it waits", || async {
        clients[1].get("/metrics").await.text.contains("lock_waiting{recipe=\"fair\"} 1")
    })
    .await;
    clients[1].expire_session().await;
    assert!(!holder.is_finished(), "it was expired while it waited");
    for order in [holder, waiter] {
        let order = order.await.expect("no panic");
        assert_eq!(order.status, 201, "{order:?}");
    }
    let metrics = clients[1].get("/metrics").await.text;
    let lost = "lock_wait_duration_seconds_count{outcome=\"session-lost\",recipe=\"fair\"} 1";
    assert!(metrics.contains(lost), "{metrics}");
    assert_eq!(clients[0].on_hand("a").await, 8);
    world.assert_sound().await;
}

/// ZooKeeper's data was wiped, tokens start low: refused, and said plainly.
#[tokio::test]
async fn tokens_that_start_again_are_refused_and_the_log_says_why() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    sqlx::query("UPDATE stock SET fence = 9000000000000000000").execute(&world.pool).await.unwrap();
    let reply = client.order(&[("a", 1)], None).await;
    assert_eq!((reply.status, reply.code(), &reply.json["order"]), (503, "fenced-out", &json!("not-placed")));
    until("the incident says that nobody overtook", || async {
        let query = "SELECT count(*) FROM incidents WHERE reason = 'token-behind-fence-while-held'";
        world.scalar(query).await == 1
    })
    .await;
    assert!(
        fleet.replicas()[0].child().log_tail(50).contains("Was ZooKeeper's data wiped"),
        "the log says so"
    );
    let metrics = client.get("/metrics").await.text;
    let line = "order_fenced_writes_total{reason=\"token-behind-fence-while-held\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

/// A stale holder whose transaction is still open: the next one reads only after it ended.
#[tokio::test]
async fn the_claim_waits_for_an_open_transaction_and_reads_what_it_left() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client: &Client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let mut open = world.pool.begin().await.unwrap();
    sqlx::query("UPDATE stock SET on_hand = on_hand - 4").execute(&mut *open).await.unwrap();
    let ordering = client.clone();
    let order = tokio::spawn(async move { ordering.order(&[("a", 1)], None).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the claim waits", || async { world.scalar(waiting).await == 1 }).await;
    open.commit().await.unwrap();
    let order = order.await.expect("no panic");
    assert_eq!((order.status, &order.json["lines"][0]["on_hand_after"]), (201, &json!(5)), "{order:?}");
    // One that does not end is not waited for beyond lock_timeout.
    let mut open = world.pool.begin().await.unwrap();
    sqlx::query("UPDATE stock SET on_hand = on_hand - 1").execute(&mut *open).await.unwrap();
    let order = client.order(&[("a", 1)], None).await;
    assert_eq!(
        (order.status, order.code(), &order.json["order"]),
        (503, "unavailable", &json!("not-placed"))
    );
    open.rollback().await.unwrap();
    assert_eq!(client.on_hand("a").await, 5);
}

/// A holder that is frozen inside its transaction keeps the row only until PostgreSQL ends it.
#[tokio::test]
async fn a_holder_frozen_inside_its_transaction_does_not_keep_the_row() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.lock_wait = LONG;
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    let mut open = world.pool.begin().await.unwrap();
    sqlx::query("UPDATE stock SET updated_at = updated_at").execute(&mut *open).await.unwrap();
    let holder = clients[0].clone();
    let stale = tokio::spawn(async move { holder.order(&[("a", 1)], None).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the claim waits", || async { world.scalar(waiting).await == 1 }).await;
    fleet.replicas()[0].child().pause();
    open.commit().await.unwrap();
    let next = clients[1].order(&[("a", 1)], None).await;
    assert_eq!((next.status, &next.json["lines"][0]["on_hand_after"]), (201, &json!(9)), "{next:?}");
    fleet.replicas()[0].child().resume();
    let stale = stale.await.expect("no panic");
    assert_eq!((stale.status, &stale.json["order"]), (503, &json!("not-placed")), "{stale:?}");
    assert_eq!(clients[1].on_hand("a").await, 9);
    world.assert_sound().await;
}

fn store(world: &World) -> Store {
    let vars = [("DATABASE_URL", &world.database_url), ("ZOOKEEPER_CONNECT", &world.zookeeper)];
    let vars: BTreeMap<_, _> =
        vars.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    Store::new(&Config::parse(&vars, "test").unwrap_or_else(|problems| panic!("{problems}")))
}

async fn set(store: &Store, sku: &str, on_hand: i64, token: i64) -> Result<Written, WriteError> {
    let sku = Sku::parse(sku).expect("a SKU");
    let command = Command::Set { sku: sku.clone(), on_hand: OnHand::new(Some(on_hand)).expect("a stock") };
    let entries = [Entry { sku, token: Some(token), node: None, acquired_at: None }];
    let reply = |_: &Decided<'_>| Reply { status: 200, body: "{}".into(), order_id: None };
    let until = Instant::now() + Duration::from_secs(10);
    let writing = Writing {
        command: &command,
        keyed: None,
        entries: &entries,
        looked: None,
        trace_id: "t",
        reply: &reply,
        until,
        settle_until: until,
    };
    store.write(writing, &Gate::default()).await
}

/// A SKU that does not exist yet is fenced from its first row on, whoever comes first.
#[tokio::test]
async fn creation_is_fenced_too() {
    let world = World::new().await;
    let store = store(&world);
    store.migrate().await.expect("a schema");
    set(&store, "a", 5, 50).await.expect("created");
    let stale = set(&store, "a", 4, 49).await;
    assert!(matches!(stale, Err(WriteError::FencedOut { token: 49, fence: 50, .. })), "{stale:?}");
    set(&store, "a", 6, 50).await.expect("the same holder again");
    for round in 0..20 {
        let sku = format!("race-{round}");
        let creations = (1..=6_i64).map(|token| set(&store, &sku, token, token));
        let results = futures::future::join_all(creations).await;
        assert!(results[5].is_ok(), "nobody is ahead of the highest token: {results:?}");
    }
    let wrong = "SELECT count(*) FROM stock WHERE sku LIKE 'race-%' AND (fence <> 6 OR on_hand <> 6)";
    assert_eq!(world.scalar(wrong).await, 0, "the highest token has the last word");
    world.assert_sound().await;
}
