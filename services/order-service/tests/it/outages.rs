//! Servers that are away. These tests have servers of their own, and stop them.

use std::time::{Duration, Instant};

use serde_json::json;
use stack::{Exit, Postgres, RunDir, ZooKeeper, ZooKeeperConfig};

use crate::support::{Client, PATIENCE, World, until};

struct Servers {
    world: World,
    postgres: Postgres,
    zookeeper: ZooKeeper,
    _dir: RunDir,
}

async fn servers() -> Servers {
    let dir = RunDir::disposable("outage").expect("a folder");
    let config = ZooKeeperConfig { servers: 1, ..ZooKeeperConfig::default() };
    let (postgres, zookeeper) = tokio::join!(Postgres::start(&dir), ZooKeeper::start(&dir, config));
    let (postgres, zookeeper) = (postgres.expect("postgres"), zookeeper.expect("zookeeper"));
    let url = postgres.create_database("orders").await.expect("a database");
    let connect = zookeeper.connect_string("/lockstock");
    Servers { world: World::on(url, connect), postgres, zookeeper, _dir: dir }
}

const WAIT: Duration = Duration::from_secs(2);
const ENV: [(&str, &str); 1] = [("ORDER_LOCK_WAIT_MS", "2000")];

/// An order, which must be answered in time.
async fn timely_order(client: &Client, key: Option<&str>) -> crate::support::Reply {
    let sent = Instant::now();
    let reply = client.order(&[("a", 1)], key).await;
    assert!(sent.elapsed() < WAIT + Duration::from_millis(500), "{:?}: {reply:?}", sent.elapsed());
    reply
}

/// Clock ticks of a process so far.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime")
}

/// Cases 25 and 26.
#[tokio::test]
async fn it_starts_without_its_servers_heals_and_stops_without_them() {
    let servers = servers().await;
    servers.zookeeper.stop_all().await;
    servers.postgres.stop().await;
    let (child, url) = servers.world.process("1", &ENV).await;
    let client = Client::new(&url);
    until("it lives", || async {
        matches!(client.try_send("GET", "/healthz", None, &[]).await, Ok(reply) if reply.status == 200)
    })
    .await;
    let reply = client.get("/readyz").await;
    assert_eq!(reply.status, 503);
    for check in ["database", "zookeeper", "registration"] {
        assert!(reply.text.contains(check), "{reply:?}");
    }
    let refused = timely_order(&client, None).await;
    assert_eq!((refused.status, &refused.json["order"]), (503, &json!("not-placed")), "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let (ticks, since) = (cpu_ticks(child.pid()), Instant::now());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let busy = (cpu_ticks(child.pid()) - ticks) as f64 / 100.0 / since.elapsed().as_secs_f64();
    assert!(busy < 0.1, "it waits, it does not spin: {busy}");

    servers.postgres.start_again().await.expect("postgres");
    let still = timely_order(&client, None).await;
    assert_eq!((still.status, &still.json["order"]), (503, &json!("not-placed")), "{still:?}");
    servers.zookeeper.start_all().await.expect("zookeeper");
    until("it is ready", || client.is_ready()).await;
    client.set("a", 10).await;
    assert_eq!(timely_order(&client, None).await.status, 201);

    // Case 26: SIGTERM while ZooKeeper is down.
    servers.zookeeper.stop_all().await;
    until("it is not ready", || async { !client.is_ready().await }).await;
    let asked = Instant::now();
    child.terminate();
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", child.log_tail(20));
    assert!(asked.elapsed() < Duration::from_secs(6), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn zookeeper_goes_and_comes_back() {
    let servers = servers().await;
    let (child, url) = servers.world.process("1", &ENV).await;
    let client = Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 10).await;
    servers.zookeeper.stop_all().await;
    let orders = futures::future::join_all((0..8).map(|_| timely_order(&client, None))).await;
    for reply in orders {
        assert_eq!((reply.status, &reply.json["order"]), (503, &json!("not-placed")), "{reply:?}");
    }
    assert_eq!(client.get("/stock/a").await.status, 200, "reads need no lock");
    servers.zookeeper.start_all().await.expect("zookeeper");
    until("it is ready again", || client.is_ready()).await;
    until("orders are served again", || async { timely_order(&client, None).await.status == 201 }).await;
    assert_eq!(client.on_hand("a").await, 9, "nothing that was refused was placed");
    servers.world.assert_sound().await;
    assert!(child.stop(PATIENCE).await.success());
}

/// Nothing else would stop a replica without a lock from working beside others that lock: its node is gone.
#[tokio::test]
async fn without_its_session_a_replica_without_a_lock_stops_too() {
    let servers = servers().await;
    let mut env = ENV.to_vec();
    env.extend([("ORDER_LOCK_MODE", "none"), ("ORDER_WRITER", "plain")]);
    let (child, url) = servers.world.process("1", &env).await;
    let client = Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 1000).await;
    servers.zookeeper.stop_all().await;
    until("orders are refused", || async { timely_order(&client, None).await.status == 503 }).await;
    servers.zookeeper.start_all().await.expect("zookeeper");
    until("orders are served again", || async { timely_order(&client, None).await.status == 201 }).await;
    assert!(child.stop(PATIENCE).await.success());
}

/// Case 37, with a shorter outage.
#[tokio::test]
async fn postgres_goes_and_comes_back() {
    let servers = servers().await;
    let (child, url) = servers.world.process("1", &ENV).await;
    let client = &Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 1000).await;
    let mut acknowledged = 0;
    // Some connections in the pool, that the restart makes stale.
    for reply in futures::future::join_all((0..10).map(|_| timely_order(client, None))).await {
        assert_eq!(reply.status, 201, "{reply:?}");
        acknowledged += 1;
    }
    servers.postgres.stop().await;
    let until_when = Instant::now() + Duration::from_secs(6);
    let mut slowest_known_down = Duration::ZERO;
    while Instant::now() < until_when {
        let sent = Instant::now();
        let reply = timely_order(client, None).await;
        assert_eq!((reply.status, &reply.json["order"]), (503, &json!("not-placed")), "{reply:?}");
        if !client.is_ready().await {
            slowest_known_down = sent.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(slowest_known_down < Duration::from_millis(500), "fast failures: {slowest_known_down:?}");
    let keyed = timely_order(client, Some("k")).await;
    assert_eq!((keyed.status, &keyed.json["order"]), (503, &json!("unknown")), "{keyed:?}");
    servers.postgres.start_again().await.expect("postgres");
    let back = Instant::now();
    until("orders are served again", || async { timely_order(client, Some("k")).await.status == 201 }).await;
    acknowledged += 1;
    assert!(back.elapsed() < Duration::from_secs(10), "{:?}", back.elapsed());
    assert_eq!(servers.world.scalar("SELECT count(*) FROM orders").await, acknowledged);
    servers.world.assert_sound().await;
    assert!(child.stop(PATIENCE).await.success());
}

/// A crash in the middle of load: what was acknowledged is there, what was refused is not.
#[tokio::test]
async fn postgres_crashes_under_load() {
    let servers = servers().await;
    let (_child, url) = servers.world.process("1", &ENV).await;
    let client = &Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 100_000).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let users: Vec<_> = (0..6)
        .map(|_| {
            let (client, stopped) = (client.clone(), stopped.clone());
            tokio::spawn(async move {
                let (mut acknowledged, mut unknown) = (0_i64, 0_i64);
                while !*stopped.borrow() {
                    let reply = client.order(&[("a", 1)], None).await;
                    match (reply.status, reply.json["order"].as_str()) {
                        (201, _) => acknowledged += 1,
                        (503, Some("not-placed")) => {}
                        (503, Some("unknown")) => unknown += 1,
                        _ => panic!("{reply:?}"),
                    }
                }
                (acknowledged, unknown)
            })
        })
        .collect();
    for _ in 0..3 {
        let before = servers.world.scalar("SELECT count(*) FROM orders").await;
        until("orders are placed", || async {
            servers.world.scalar("SELECT count(*) FROM orders").await > before + 20
        })
        .await;
        servers.postgres.kill().await;
        servers.postgres.start_again().await.expect("postgres");
        until("the test's own connections are back", || async {
            sqlx::query("SELECT 1").execute(&servers.world.pool).await.is_ok()
        })
        .await;
    }
    stop.send_replace(true);
    let (mut acknowledged, mut unknown) = (0, 0);
    for user in users {
        let (a, u) = user.await.expect("no panic");
        acknowledged += a;
        unknown += u;
    }
    let there = servers.world.scalar("SELECT count(*) FROM orders").await;
    assert!(acknowledged <= there && there <= acknowledged + unknown, "{acknowledged} {unknown} {there}");
    servers.world.assert_sound().await;
}
