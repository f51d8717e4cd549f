//! Clients that leave.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::support::{Client, PATIENCE, World, clients, order_body, until, until_held};

/// Case 35.
#[tokio::test]
async fn an_order_goes_on_without_its_client_and_a_retry_finds_it() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.work = Duration::from_secs(2);
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    let gone = tokio::spawn({
        let client = clients[0].clone();
        async move { client.order(&[("a", 1)], Some("gone")).await }
    });
    until_held(&world.zookeeper, "a").await;
    gone.abort();
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 0, "it left in the middle of the work");
    // On the other replica: waits for the lock of the first attempt, and finds its order.
    let retry = clients[1].order(&[("a", 1)], Some("gone")).await;
    assert_eq!(retry.status, 201, "{retry:?}");
    assert_eq!(retry.header("idempotency-replayed"), Some("true"));
    assert_eq!(retry.json["instance"], fleet.replicas()[0].name());
    assert_eq!((clients[0].on_hand("a").await, world.scalar("SELECT count(*) FROM orders").await), (9, 1));
    world.assert_sound().await;
}

/// Requests that the service is working on now, as its gauge says.
async fn in_flight(client: &Client) -> usize {
    let metrics = client.get("/metrics").await.text;
    let line = metrics.lines().find(|line| line.starts_with("order_requests_in_flight")).unwrap_or_default();
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Case 36: a small pool, many clients that leave at once; afterwards orders are served as before.
#[tokio::test]
async fn the_pool_recovers_from_a_storm_of_clients_that_leave() {
    const CLIENTS: usize = 60;
    let world = World::new().await;
    let fleet = world.fleet("none", |config| {
        config.extra_env.push(("ORDER_DB_CONNECTIONS_MAX".into(), "2".into()));
        config.work = Duration::from_secs(3);
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 1000).await;
    let mut storm = JoinSet::new();
    for number in 0..CLIENTS {
        let client = client.clone();
        storm.spawn(async move { client.order(&[("a", 1)], Some(&format!("gone-{number}"))).await });
    }
    // Nobody leaves before the service has everybody's order.
    until("everybody's order has arrived", || async { in_flight(client).await >= CLIENTS }).await;
    storm.shutdown().await;
    client.set_work(0).await;
    until("everybody's order is there", || async {
        world.scalar("SELECT count(*) FROM orders").await == i64::try_from(CLIENTS).expect("a small number")
    })
    .await;
    for _ in 0..10 {
        assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    }
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(world.scalar(open).await, 0, "I5");
}

/// The limit on requests holds for the work that clients leave behind, too.
#[tokio::test]
async fn clients_that_leave_do_not_get_around_the_limit() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.extra_env.push(("ORDER_REQUESTS_MAX".into(), "3".into()));
        config.work = Duration::from_secs(3);
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let address = fleet.replicas()[0].url().strip_prefix("http://").expect("a URL").to_owned();
    let body = order_body(&[("a", 1)]).to_string();
    let request = format!("POST /orders HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for _ in 0..3 {
        let mut connection = TcpStream::connect(&address).await.expect("it listens");
        connection.write_all(request.as_bytes()).await.expect("sent");
        until("the order has arrived", || async { in_flight(client).await == 1 }).await;
        connection.set_zero_linger().expect("set");
        drop(connection);
        until("the client has gone", || async { in_flight(client).await == 0 }).await;
    }
    let refused = client.order(&[("a", 1)], None).await;
    assert_eq!((refused.status, refused.code()), (503, "overloaded"), "{refused:?}");
    assert_eq!(refused.json["order"], "not-placed");
    let keyed = client.order(&[("a", 1)], Some("k")).await;
    assert_eq!((keyed.status, &keyed.json["order"]), (503, &json!("unknown")), "{keyed:?}");
    let read = client.get("/stock/a").await;
    assert_eq!((read.status, read.code()), (503, "overloaded"), "{read:?}");
    let said = [&read.json["order"], &read.json["change"]];
    assert_eq!(said, [&json!(null), &json!(null)], "a read places and changes nothing: {read:?}");
    let cancel = client.cancel("01890a5d-ac96-774b-bcce-b302099a8057").await;
    assert_eq!((cancel.status, &cancel.json["change"]), (503, &json!("unknown")), "{cancel:?}");
    client.set_work(0).await;
    until("what they left is done", || async { world.scalar("SELECT count(*) FROM orders").await == 3 })
        .await;
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    assert_eq!(client.on_hand("a").await, 6);
}

/// Case 35, the other end: the body does not come, so with a key nobody knows what was asked for.
#[tokio::test]
async fn a_body_that_does_not_come_is_answered_for_in_time() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.lock_wait = Duration::from_millis(500)).await;
    let address = fleet.replicas()[0].url().strip_prefix("http://").expect("a URL").to_owned();
    for (key, standing) in [("", "not-placed"), ("idempotency-key: k\r\n", "unknown")] {
        let head = format!("POST /orders HTTP/1.1\r\nhost: x\r\n{key}content-length: 40\r\n\r\n{{");
        let mut connection = TcpStream::connect(&address).await.expect("it listens");
        connection.write_all(head.as_bytes()).await.expect("sent");
        let mut reply = String::new();
        let read = tokio::time::timeout(PATIENCE, connection.read_to_string(&mut reply)).await;
        read.expect("an end").expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
        assert!(reply.contains(&format!(r#""order":"{standing}""#)), "{reply}");
    }
}
