//! Clients that leave.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::support::{World, clients, order_body};

/// Sends an order and hangs up after a while.
async fn hang_up(url: &str, key: &str, after: Duration) {
    let http = reqwest::Client::builder().no_proxy().timeout(after).build().expect("a client");
    let order = http.post(format!("{url}/orders")).header("Idempotency-Key", key);
    let sent = order.body(order_body(&[("a", 1)]).to_string()).send().await;
    assert!(sent.is_err(), "it was answered before the client left: {sent:?}");
}

/// Case 35.
#[tokio::test]
async fn an_order_goes_on_without_its_client_and_a_retry_finds_it() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.work = Duration::from_millis(600);
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    hang_up(fleet.replicas()[0].url(), "gone", Duration::from_millis(250)).await;
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 0, "it left in the middle of the work");
    // On the other replica: waits for the lock of the first attempt, and finds its order.
    let retry = clients[1].order(&[("a", 1)], Some("gone")).await;
    assert_eq!(retry.status, 201, "{retry:?}");
    assert_eq!(retry.header("idempotency-replayed"), Some("true"));
    assert_eq!(retry.json["instance"], fleet.replicas()[0].name());
    assert_eq!((clients[0].on_hand("a").await, world.scalar("SELECT count(*) FROM orders").await), (9, 1));
    world.assert_sound().await;
}

/// Case 36: a small pool, many clients that leave; afterwards a request is as quick as before.
#[tokio::test]
async fn the_pool_recovers_from_a_storm_of_clients_that_leave() {
    let world = World::new().await;
    let fleet = world.fleet("none", |config| {
        config.extra_env.push(("ORDER_DB_CONNECTIONS_MAX".into(), "2".into()));
        config.work = Duration::from_millis(100);
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 1000).await;
    let keys: Vec<String> = (0..60).map(|i| format!("gone-{i}")).collect();
    join_all(keys.iter().map(|key| hang_up(fleet.replicas()[0].url(), key, Duration::from_millis(50)))).await;
    client.set_work(0).await;
    crate::support::until("everybody's order is there", || async {
        world.scalar("SELECT count(*) FROM orders").await == 60
    })
    .await;
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let sent = Instant::now();
        assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
        slowest = slowest.max(sent.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(world.scalar(open).await, 0, "I5");
}
