//! A collector that is away, slow, or spoken to in the wrong protocol.

use std::time::{Duration, Instant};

use stack::Exit;

use super::receiver::Receiver;
use crate::support::{Client, PATIENCE, World, until};

/// The counters of `trace.spans`, by outcome.
async fn fates(client: &Client) -> Vec<(String, u64)> {
    let text = client.get("/metrics").await.text;
    let line = |line: &str| {
        let (outcome, count) = line.strip_prefix("trace_spans_total{outcome=\"")?.split_once("\"} ")?;
        Some((outcome.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

async fn fate(client: &Client, outcome: &str) -> u64 {
    let fates = fates(client).await;
    fates.iter().find(|(name, _)| name == outcome).unwrap_or_else(|| panic!("{outcome} in {fates:?}")).1
}

/// A collector that is not there delays nothing and keeps nobody from stopping; it is missed once, and welcomed once.
#[tokio::test]
async fn without_its_collector_it_serves_says_so_once_and_stops() {
    let world = World::new().await;
    let port = stack::ports::free(1).expect("a port")[0];
    let endpoint = format!("http://127.0.0.1:{port}");
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "100"),
    ];
    let (child, url) = world.process("1", &env).await;
    let client = Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 1000).await;
    let lines = |text: &str| child.log_tail(10_000).lines().filter(|line| line.contains(text)).count();
    // Several batches fail.
    for _ in 0..3 {
        let before = fate(&client, "export-failed").await;
        assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
        until("a batch failed", || async { fate(&client, "export-failed").await > before }).await;
    }
    assert_eq!(lines("spans are not exported"), 1, "{}", child.log_tail(50));
    let receiver = Receiver::at(port);
    until("spans are exported again", || async {
        client.order(&[("a", 1)], None).await;
        lines("spans are exported again") > 0
    })
    .await;
    assert!(receiver.spans().all().count() > 0);
    assert_eq!(lines("spans are exported again"), 1, "{}", child.log_tail(50));
    assert_eq!(lines("\"target\":\"opentelemetry"), 0, "nobody else speaks of it: {}", child.log_tail(50));
    child.terminate();
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", child.log_tail(20));
}

/// Case 39. A collector that takes nothing for a while: what does not fit into the queue is dropped and counted, orders
/// go on, and in the end received + reported dropped = made. What is made is known: twelve spans an order.
#[tokio::test]
async fn a_full_queue_drops_spans_and_says_how_many() {
    const ORDERS: u64 = 60;
    let world = World::new().await;
    let receiver = Receiver::start();
    let endpoint = receiver.endpoint();
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "64"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
    ];
    let (child, url) = world.process("1", &env).await;
    let client = Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 1000).await;
    let arrived = || receiver.spans().all().count() as u64;
    until("the first spans arrived", || async { arrived() == 10 }).await;
    let stalled = receiver.stall().await;
    for _ in 0..ORDERS {
        assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    }
    let made = 10 + 12 * ORDERS;
    // The last release may still be under way. All but what is in the queue or on its way is dropped.
    until("the queue is full", || async { fate(&client, "queue-full").await >= made - 10 - 64 - 32 }).await;
    drop(stalled);
    until("the queue is empty", || async {
        fates(&client).await.iter().map(|(_, count)| count).sum::<u64>() == made
    })
    .await;
    let dropped = fate(&client, "queue-full").await;
    assert_eq!((arrived() + dropped, fate(&client, "exported").await), (made, arrived()));
    assert!(dropped > 500, "{dropped}");
    let log = child.log_tail(1000);
    assert_eq!(log.matches("the queue to the collector is full").count(), 1, "{log}");
    assert_eq!(log.matches("has room again").count(), 1, "{log}");
    child.terminate();
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", child.log_tail(20));
}

/// A collector that takes the connection and never answers keeps nobody from stopping; what is lost is said.
#[tokio::test]
async fn a_collector_that_never_answers_keeps_nobody_from_stopping() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let endpoint = receiver.endpoint();
    let _stalled = receiver.stall().await;
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let (child, url) = world.process("1", &env).await;
    let client = Client::new(&url);
    until("it is ready", || client.is_ready()).await;
    client.set("a", 10).await;
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    let asked = Instant::now();
    child.terminate();
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(0)), "{}", child.log_tail(20));
    // Two seconds for the flush, and the drain.
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    assert!(child.log_tail(20).contains("spans were dropped since the start"), "{}", child.log_tail(20));
}

/// Settings that cannot be honoured are refused at start, by name.
#[tokio::test]
async fn settings_that_cannot_be_honoured_are_refused() {
    let world = World::new().await;
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "often"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ] {
        let mut env = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"), (name, value)];
        if name == "OTEL_TRACES_SAMPLER_ARG" {
            env.push(("OTEL_TRACES_SAMPLER", "traceidratio"));
        }
        let (child, _) = world.process(&format!("refused-{name}"), &env).await;
        assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(2)), "{name}: {}", child.log_tail(20));
        let log = child.log_tail(20);
        assert!(log.contains(name) && log.contains(value), "{name}: {log}");
    }
}
