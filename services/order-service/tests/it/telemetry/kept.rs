//! What is kept of what is not sampled.

use std::collections::BTreeSet;

use super::{catalog, receiver::Receiver, traced};
use crate::support::{PATIENCE, World, clients, until};

/// Samples nothing.
pub(super) const NONE: [(&str, &str); 2] =
    [("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0")];

/// With a ratio of nought a fenced write is there whole, with both tokens, and an accepted order is not.
#[tokio::test]
async fn a_trace_with_an_error_is_kept_whole_whatever_the_ratio() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &NONE).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    assert_eq!(client.order(&[("a", 1)], None).await.status, 201);
    sqlx::query("UPDATE stock SET fence = 9000000000000000000").execute(&world.pool).await.expect("fenced");
    let fenced = client.order(&[("a", 1)], None).await;
    assert_eq!(fenced.code(), "fenced-out", "{fenced:?}");
    let token = fenced.json["token"].to_string();
    let detail = fenced.json["detail"].as_str().expect("a detail");
    assert!(detail.contains(&token) && detail.contains("9000000000000000000"), "{detail}");
    until("the incident is recorded", || async { world.scalar("SELECT count(*) FROM incidents").await == 1 })
        .await;
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let traces: BTreeSet<&str> = spans.all().map(|span| span.trace.as_str()).collect();
    assert_eq!(traces, BTreeSet::from([fenced.json["trace_id"].as_str().expect("a trace id")]));
    let mut names: Vec<&str> = spans.all().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "BEGIN",
            "INSERT incidents",
            "POST /orders",
            "ROLLBACK",
            "SELECT stock",
            "UPDATE stock",
            "lock.acquire",
            "lock.release",
            "order.place",
            "stock.deduct",
        ]
    );
    let ids: BTreeSet<&str> = spans.all().map(|span| span.id.as_str()).collect();
    let orphans: Vec<_> = spans.all().filter(|span| !ids.contains(span.parent.as_str())).collect();
    assert!(orphans.len() == 1 && orphans[0].name == "POST /orders", "one root: {orphans:?}");
    let deduct = spans.one("stock.deduct");
    assert_eq!(deduct.attribute("stock.outcome"), "fenced-out");
    assert_eq!(deduct.attribute("lock.token"), token);
    assert_eq!(deduct.attribute("stock.fence"), "9000000000000000000");
    let error = deduct.error.as_deref().expect("an error");
    assert!(error.contains(&token) && error.contains("9000000000000000000"), "{error}");
    assert_eq!(deduct.event("fenced out").attribute("stock.fence"), "9000000000000000000");
}

/// A caller that does not sample does not hide an error either, and one that samples is listened to.
#[tokio::test]
async fn the_callers_choice_holds_for_what_went_well() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &NONE).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let order = async |trace: &str, flags: &str| {
        let parent = format!("00-{trace}-b7ad6b7169203331-{flags}");
        let body = Some(crate::support::order_body(&[("a", 1)]));
        client.send("POST", "/orders", body, &[("traceparent", parent.as_str())]).await.status
    };
    let traces = ["0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d"];
    assert_eq!(order(traces[0], "01").await, 201);
    assert_eq!(order(traces[1], "00").await, 201);
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    assert!(spans.trace(traces[0]).all().count() > 8, "{spans:?}");
    assert_eq!(spans.trace(traces[1]).all().count(), 0, "{spans:?}");
}
