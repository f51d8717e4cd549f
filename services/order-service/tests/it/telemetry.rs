//! What the service tells: spans to a real OTLP receiver in this process, metrics at `/metrics`, logs.

mod catalog;
mod collector;
mod kept;
mod receiver;
mod story;

use std::{collections::BTreeSet, time::Duration};

use futures::future::join_all;
use order_service::telemetry::METRICS;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use self::receiver::{Receiver, Seen};
use crate::support::{PATIENCE, World, clients, order_body, until};

async fn traced(world: &World, receiver: &Receiver, replicas: usize, env: &[(&str, &str)]) -> stack::Fleet {
    let more = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>();
    let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    world
        .fleet("zk-fair", |config| {
            config.replicas = replicas;
            config.extra_env.extend([
                env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.endpoint()),
                env("OTEL_SERVICE_NAME", "orders-under-test"),
                // Long: what arrives soon was flushed at the end.
                env("OTEL_BSP_SCHEDULE_DELAY", "60000"),
                // What the log shows has no say in what a span tells.
                env("RUST_LOG", "off"),
            ]);
            config.extra_env.extend(more);
        })
        .await
}

/// Sends an order and breaks the connection while it is worked for.
async fn order_and_leave(fleet: &stack::Fleet, trace: &str, reset: bool) {
    let address = fleet.replicas()[0].url().strip_prefix("http://").expect("a URL").to_owned();
    let mut connection = tokio::net::TcpStream::connect(&address).await.expect("it listens");
    let body = order_body(&[("a", 1)]).to_string();
    let request = format!(
        "POST /orders HTTP/1.1\r\nhost: {address}\r\ntraceparent: 00-{trace}-b7ad6b7169203331-01\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(100)).await;
    if reset {
        connection.set_zero_linger().expect("set");
    }
}

/// Case 40: a client that closes in order is served to the end; the span of one that breaks off says so. The order goes
/// on in both cases.
#[tokio::test]
async fn the_root_span_of_a_request_without_its_client_exists_and_says_so() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &[]).await;
    let client = &clients(&fleet)[0];
    client.set("a", 100).await;
    client.set_work(400).await;
    let (closed, broken) = ("0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d");
    order_and_leave(&fleet, closed, false).await;
    order_and_leave(&fleet, broken, true).await;
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    for (trace, status, error) in [(closed, "201", ""), (broken, "", "client-gone")] {
        let trace = spans.trace(trace);
        let server = trace.one("POST /orders");
        assert_eq!(server.attribute("http.response.status_code"), status);
        assert_eq!(server.attribute("error.type"), error);
        let place = trace.one("order.place");
        assert_eq!((&place.parent, place.attribute("order.outcome")), (&server.id, "accepted".into()));
        assert_eq!(trace.one("lock.release").trace, server.trace, "the order ended without its client");
    }
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 2);
}

/// As Prometheus spells it.
fn prometheus_name(name: &str, unit: &str, kind: &str) -> String {
    let unit = match unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = if kind == "counter" { "_total" } else { "" };
    format!("{}{unit}{total}", name.replace('.', "_"))
}

#[tokio::test]
async fn the_metrics_have_the_names_of_the_catalog_and_no_label_per_sku() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 2).await;
    let clients = clients(&fleet);
    for i in 0..20 {
        clients[0].set(&format!("sku-{i}"), 1).await;
    }
    let orders = join_all((0..40).map(|i| {
        let client = &clients[0];
        async move { client.order(&[(format!("sku-{}", i % 20).as_str(), 1)], None).await.status }
    }));
    let statuses = orders.await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 20);
    clients[0].until_released().await;
    let text = clients[0].get("/metrics").await.text;
    let families: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let known: BTreeSet<String> = METRICS
        .iter()
        .map(|metric| prometheus_name(metric.name, metric.unit, metric.kind.as_str()))
        .collect();
    for family in &families {
        assert!(known.contains(*family) || *family == "target_info", "{family} is not in the catalog");
    }
    for metric in METRICS {
        let name = prometheus_name(metric.name, metric.unit, metric.kind.as_str());
        assert!(families.contains(name.as_str()), "{name} is not exported");
        let help = format!("# HELP {name} {}", metric.help);
        assert!(text.lines().any(|line| line == help), "{help}");
    }
    assert!(!text.contains("sku-") && !text.contains("otel_scope"), "{text}");
    for line in [
        "order_requests_total{operation=\"order\",outcome=\"accepted\"} 20",
        "order_requests_total{operation=\"order\",outcome=\"out-of-stock\"} 20",
        // Counters begin before their first event.
        "order_requests_total{operation=\"cancel\",outcome=\"unavailable\"} 0",
        "order_fenced_writes_total{reason=\"overtaken\"} 0",
        "lock_lost_total{reason=\"lease-run-out\",recipe=\"fair\"} 0",
        "lock_release_pending_total 0",
        "trace_spans_total{outcome=\"queue-full\"} 0",
        "zookeeper_session_state{state=\"connected\"} 1",
        "lock_held{recipe=\"fair\"} 0",
        "lock_waiting{recipe=\"fair\"} 0",
        "order_limit_requests 2048",
        "order_limit_body_bytes 65536",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    for bucket in ["0.1", "0.5", "1", "2", "5"] {
        let line = format!(
            "lock_wait_duration_seconds_bucket{{outcome=\"acquired\",recipe=\"fair\",le=\"{bucket}\"}}"
        );
        assert!(text.contains(&line), "{line} in {text}");
    }
    for bucket in ["0.5", "1", "5", "10", "30"] {
        let line = format!("lock_hold_duration_seconds_bucket{{recipe=\"fair\",le=\"{bucket}\"}}");
        assert!(text.contains(&line), "{line} in {text}");
    }
    let log = fleet.replicas()[0].child().log_tail(50);
    assert!(log.contains("traces are not exported"), "said once: {log}");
    let line = log.lines().find(|line| line.contains(r#""message":"listening""#)).expect("a line");
    let line: serde_json::Value = serde_json::from_str(line).expect("logs are JSON");
    assert_eq!(line["mode"], json!("zk-fair"));
}

/// While somebody waits, the gauges say so.
#[tokio::test]
async fn the_gauges_show_who_holds_and_who_waits() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.work = Duration::from_millis(1500)).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let orders: Vec<_> = (0..3)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.order(&[("a", 1)], None).await.status })
        })
        .collect();
    until("one holds and two wait", || async {
        let text = client.get("/metrics").await.text;
        text.contains("lock_held{recipe=\"fair\"} 1")
            && text.contains("lock_waiting{recipe=\"fair\"} 2")
            && text.contains("order_requests_in_flight 3")
    })
    .await;
    let text = client.get("/metrics").await.text;
    let longest = text.lines().find_map(|line| line.strip_prefix("lock_wait_longest_seconds "));
    assert!(longest.is_some_and(|longest| longest.parse::<f64>().is_ok_and(|s| s > 0.0)), "{longest:?}");
    for order in orders {
        assert_eq!(order.await.expect("no panic"), 201);
    }
}

impl Seen {
    fn services(&self) -> BTreeSet<String> {
        self.all().map(|span| span.service.clone()).collect()
    }

    fn instances(&self) -> BTreeSet<String> {
        self.all().map(|span| span.instance.clone()).collect()
    }
}
