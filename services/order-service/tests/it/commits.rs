//! Commits that get no reply.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use stack::{Cut, Proxy, Silence};

use crate::support::{Client, World, clients, until};

/// A proxy before the world's database, and the URL through it.
fn proxied(world: &World) -> (Proxy, String) {
    let port = world.database_url.parse::<PgConnectOptions>().expect("a URL").get_port();
    let proxy = Proxy::start(SocketAddr::from(([127, 0, 0, 1], port))).expect("a proxy");
    let through = format!(":{}/", proxy.address().port());
    let url = world.database_url.replace(&format!(":{port}/"), &through);
    (proxy, url)
}

/// A world whose service reaches the database through a proxy, and whose commits of orders take a while.
async fn with_slow_commits(seconds: f64) -> (World, Proxy, stack::Fleet) {
    let direct = World::new().await;
    // A server that looks for its clients would roll back when one is gone; not every server does.
    let blind = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_connection_check_interval = 0',
                                            current_database()); END $$";
    sqlx::raw_sql(blind).execute(&direct.pool).await.expect("set");
    let (proxy, url) = proxied(&direct);
    let fleet = direct.fleet("zk-fair", |config| {
        config.database_url = url;
        config.lock_wait = Duration::from_secs(4);
    });
    let fleet = fleet.await;
    clients(&fleet)[0].set("a", 10).await;
    let slow = format!(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION slow();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(slow)).execute(&direct.pool).await.expect("a trigger");
    (direct, proxy, fleet)
}

const COMMITTING: &str = "SELECT count(*) FROM pg_stat_activity
                          WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'";

async fn order_that_commits(
    world: &World,
    client: &Client,
) -> tokio::task::JoinHandle<crate::support::Reply> {
    let client = client.clone();
    let order = tokio::spawn(async move { client.order(&[("a", 1)], Some("k")).await });
    until("the commit is under way", || async { world.scalar(COMMITTING).await == 1 }).await;
    order
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_found_to_have_happened() {
    let (world, proxy, fleet) = with_slow_commits(1.0).await;
    let client = &clients(&fleet)[0];
    let order = order_that_commits(&world, client).await;
    // The reply stays on its way, and gets lost.
    proxy.silence(Silence::Replies).expect("silent");
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 0, "the commit has not ended");
    until("the commit has ended", || async { world.scalar("SELECT count(*) FROM orders").await == 1 }).await;
    proxy.drop_connections(Cut::Reset).expect("cut");
    proxy.restore().expect("restored");
    let order = order.await.expect("no panic");
    assert_eq!(order.status, 201, "{order:?}");
    until("it is ready again", || client.is_ready()).await;
    let again = client.order(&[("a", 1)], Some("k")).await;
    assert_eq!((again.status, &again.text), (201, &order.text));
    assert_eq!(client.on_hand("a").await, 9);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_commit_that_still_runs_when_its_connection_breaks_is_waited_for() {
    let (world, proxy, fleet) = with_slow_commits(1.0).await;
    let client = &clients(&fleet)[0];
    let order = order_that_commits(&world, client).await;
    proxy.drop_connections(Cut::Reset).expect("cut");
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 0, "the commit has not ended");
    let order = order.await.expect("no panic");
    assert_eq!(order.status, 201, "{order:?}");
    assert_eq!(client.on_hand("a").await, 9);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_commit_that_was_killed_is_found_not_to_have_happened() {
    let (world, _proxy, fleet) = with_slow_commits(1.5).await;
    let client = &clients(&fleet)[0];
    let order = order_that_commits(&world, client).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'";
    assert_eq!(world.scalar(kill).await, 1);
    let order = order.await.expect("no panic");
    assert_eq!(
        (order.status, order.code(), &order.json["order"]),
        (503, "unavailable", &json!("not-placed"))
    );
    assert_eq!(client.on_hand("a").await, 10);
    // Nothing was decided, so the key is free.
    assert_eq!(client.order(&[("a", 1)], Some("k")).await.status, 201);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_commit_that_nobody_answers_for_is_unknown_in_time_and_the_key_settles_it() {
    let (world, proxy, fleet) = with_slow_commits(0.5).await;
    let client = &clients(&fleet)[0];
    let sent = Instant::now();
    let order = order_that_commits(&world, client).await;
    proxy.silence(Silence::Replies).expect("silent");
    let order = order.await.expect("no panic");
    let took = sent.elapsed();
    assert_eq!((order.status, &order.json["order"]), (503, &json!("unknown")), "{order:?}");
    assert!(took < Duration::from_millis(4500), "{took:?}");
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 1, "in truth it is placed");
    let retry = client.order(&[("a", 1)], Some("k")).await;
    assert_eq!(
        (retry.status, &retry.json["order"]),
        (503, &json!("unknown")),
        "still nobody knows: {retry:?}"
    );
    proxy.restore().expect("restored");
    until("it is ready again", || client.is_ready()).await;
    let settled = client.order(&[("a", 1)], Some("k")).await;
    assert_eq!((settled.status, settled.header("idempotency-replayed")), (201, Some("true")), "{settled:?}");
    assert_eq!(client.on_hand("a").await, 9);
    world.assert_sound().await;
}

/// Nothing comes back from the database any more: refused in time, and with a key nothing is claimed about the key.
#[tokio::test]
async fn a_silent_database_is_answered_for_in_time() {
    let direct = World::new().await;
    let (proxy, url) = proxied(&direct);
    let fleet = direct.fleet("zk-fair", |config| {
        config.database_url = url;
        config.lock_wait = Duration::from_secs(3);
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 100).await;
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    proxy.silence(Silence::Both).expect("silent");
    let sent = Instant::now();
    let orders = (0..10).map(|i| {
        let key = format!("k{i}");
        async move {
            let reply = client.order(&[("a", 1)], (i % 2 == 0).then_some(key.as_str())).await;
            (i, reply, sent.elapsed())
        }
    });
    for (i, reply, took) in futures::future::join_all(orders).await {
        assert_eq!(reply.status, 503, "{reply:?}");
        assert_eq!(reply.json["order"], if i % 2 == 0 { "unknown" } else { "not-placed" }, "{reply:?}");
        assert!(took < Duration::from_millis(3500), "{i}: {took:?}");
    }
    let shown = client.get("/stock/a").await;
    assert_eq!(shown.status, 503, "{shown:?}");
    until("it is not ready", || async { !client.is_ready().await }).await;
    proxy.restore().expect("restored");
    until("it is ready again", || client.is_ready()).await;
    until("orders are served again", || async { client.order(&[("a", 1)], None).await.status == 201 }).await;
    direct.assert_sound().await;
}

/// Time runs out while a late holder waits for the row: the client is told "not placed", and it stays true.
#[tokio::test]
async fn what_was_given_up_is_rolled_back() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.lock_wait = Duration::from_millis(1500);
        config.work = Duration::from_millis(1300);
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let mut open = world.pool.begin().await.expect("a transaction");
    sqlx::query("UPDATE stock SET updated_at = updated_at").execute(&mut *open).await.expect("the row");
    let order = client.order(&[("a", 1)], None).await;
    assert_eq!((order.status, order.code()), (503, "deadline-exceeded"), "{order:?}");
    assert_eq!(order.json["order"], "not-placed");
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(world.scalar(waiting).await, 1, "it still waits for the row");
    open.commit().await.expect("the row is free");
    // Whoever gets the lock next comes after its end.
    client.set_work(0).await;
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    assert_eq!((client.on_hand("a").await, world.scalar("SELECT count(*) FROM orders").await), (9, 1));
    world.assert_sound().await;
}

/// I5: a connection that was left in the middle of a transaction does not go back to the pool with it.
#[tokio::test]
async fn a_transaction_that_ran_out_of_time_is_not_left_open() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.lock_wait = Duration::from_millis(400);
        config.extra_env.push(("ORDER_DB_LOCK_TIMEOUT_MS".into(), "2900".into()));
        config.extra_env.push(("ORDER_DB_IDLE_IN_TRANSACTION_MS".into(), "2900".into()));
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let mut open = world.pool.begin().await.expect("a transaction");
    sqlx::query("UPDATE stock SET updated_at = updated_at").execute(&mut *open).await.expect("the row");
    let order = client.order(&[("a", 1)], None).await;
    assert_eq!((order.status, &order.json["order"]), (503, &json!("not-placed")), "{order:?}");
    let inspector = zk_locks::Inspector::connect(&world.zookeeper).await.expect("zookeeper");
    until("its task has ended", || async {
        inspector.lock("/locks/stock:a").await.is_ok_and(|lock| lock.entries.is_empty())
    })
    .await;
    inspector.close().await;
    open.commit().await.expect("the row is free");
    let freed = Instant::now();
    let theirs = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                  AND pid <> pg_backend_pid() AND (state LIKE 'idle in transaction%' OR wait_event_type = 'Lock')";
    until("no transaction is open", || async { world.scalar(theirs).await == 0 }).await;
    assert!(
        freed.elapsed() < Duration::from_secs(2),
        "only PostgreSQL's timeout ended it: {:?}",
        freed.elapsed()
    );
    assert_eq!(client.on_hand("a").await, 10);
}
