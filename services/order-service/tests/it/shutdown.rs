//! SIGTERM.

use std::time::{Duration, Instant};

use serde_json::json;
use stack::Exit;

use crate::support::{Client, PATIENCE, World, clients, until, until_held};

/// Case 38: under load, with connections that are kept.
#[tokio::test]
async fn under_load_what_is_in_flight_ends_and_the_lock_is_released() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.replicas = 2;
        config.work = Duration::from_millis(20);
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 100_000).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let users: Vec<_> = (0..12)
        .map(|i| {
            let (client, stopped) = (clients[i % 2].clone(), stopped.clone());
            tokio::spawn(async move {
                let mut replies = Vec::new();
                while !*stopped.borrow() {
                    let body = crate::support::order_body(&[("a", 1)]).to_string();
                    match client.try_send("POST", "/orders", Some(body), &[]).await {
                        Ok(reply) => replies.push(reply),
                        // The replica is gone; a connection that it closed may have been picked once.
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
                replies
            })
        })
        .collect();
    until("orders are placed", || async { world.scalar("SELECT count(*) FROM orders").await > 20 }).await;
    let leaving = fleet.replicas()[0].child();
    let (asked, before) = (Instant::now(), world.scalar("SELECT count(*) FROM orders").await);
    leaving.terminate();
    assert_eq!(leaving.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", leaving.log_tail(20));
    let took = asked.elapsed();
    // Ten seconds of grace; twelve orders of 20 ms were in flight.
    assert!(took < Duration::from_secs(4), "{took:?}");
    let name = fleet.replicas()[0].name();
    let inspector = zk_locks::Inspector::connect(&world.zookeeper).await.expect("zookeeper");
    let left = inspector.lock("/locks/stock:a").await.expect("a lock");
    assert!(left.entries.iter().all(|entry| entry.instance.as_deref() != Some(name)), "{left:?}");
    assert!(inspector.members().await.expect("members").iter().all(|m| m.instance.as_deref() != Some(name)));
    inspector.close().await;
    let after = world.scalar("SELECT count(*) FROM orders").await;
    until("the other one goes on", || async {
        world.scalar("SELECT count(*) FROM orders").await > after + 20
    })
    .await;
    stop.send_replace(true);
    let mut acknowledged = 0;
    for user in users {
        for reply in user.await.expect("no panic") {
            match reply.status {
                201 => acknowledged += 1,
                503 => assert_eq!(reply.json["order"], "not-placed", "{reply:?}"),
                _ => panic!("{reply:?}"),
            }
        }
    }
    assert!(before > 20);
    assert_eq!(
        world.scalar("SELECT count(*) FROM orders").await,
        acknowledged,
        "each order was acknowledged"
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn an_idle_connection_does_not_keep_it_and_readiness_goes_first() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.work = Duration::from_millis(1500)).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    // Kept open, and idle from now on.
    let _idle = client.get("/stock/a").await;
    let watcher = Client::new(fleet.replicas()[0].url());
    assert_eq!(watcher.order(&[("a", 1)], Some("placed")).await.status, 201);
    assert!(watcher.is_ready().await);
    let ordering = Client::new(fleet.replicas()[0].url());
    let order = tokio::spawn(async move { ordering.order(&[("a", 1)], None).await });
    until_held(&world.zookeeper, "a").await;
    let child = fleet.replicas()[0].child();
    child.terminate();
    // On the connection that the watcher keeps: new ones are refused.
    until("it says that it is not ready", || async {
        let said = watcher.try_send("GET", "/readyz", None, &[]).await;
        assert!(!order.is_finished(), "the order ended before it said so");
        matches!(said, Ok(reply) if reply.status == 503 && reply.text.contains("shutting down"))
    })
    .await;
    let refused = watcher.order(&[("a", 1)], None).await;
    assert_eq!((refused.status, &refused.json["order"]), (503, &json!("not-placed")), "{refused:?}");
    // It was placed, and must not be denied by whoever cannot look.
    let retry = watcher.order(&[("a", 1)], Some("placed")).await;
    assert_eq!((retry.status, &retry.json["order"]), (503, &json!("unknown")), "{retry:?}");
    let order = order.await.expect("no panic");
    assert_eq!(order.status, 201, "what is in flight ends: {order:?}");
    assert_eq!(order.header("connection"), Some("close"));
    let asked = Instant::now();
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
}

/// What does not end within the grace period is refused, rolled back, and its lock is free at once.
#[tokio::test]
async fn the_grace_period_ends() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.work = Duration::from_secs(8);
        config.extra_env.push(("ORDER_SHUTDOWN_GRACE_MS".into(), "1000".into()));
    });
    let fleet = fleet.await;
    let client = clients(&fleet)[0].clone();
    client.set("a", 10).await;
    let order = tokio::spawn(async move { client.order(&[("a", 1)], None).await });
    until_held(&world.zookeeper, "a").await;
    let child = fleet.replicas()[0].child();
    let asked = Instant::now();
    child.terminate();
    let order = order.await.expect("no panic");
    assert_eq!((order.status, &order.json["order"]), (503, &json!("not-placed")), "{order:?}");
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", child.log_tail(20));
    assert!(asked.elapsed() < Duration::from_secs(7), "{:?}", asked.elapsed());
    assert_eq!(world.scalar("SELECT on_hand FROM stock").await, 10);
    let inspector = zk_locks::Inspector::connect(&world.zookeeper).await.expect("zookeeper");
    let left = inspector.lock("/locks/stock:a").await.expect("a lock");
    assert!(left.entries.is_empty(), "{left:?}");
    inspector.close().await;
}
