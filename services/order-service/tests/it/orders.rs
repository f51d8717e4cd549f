//! What an order, a cancellation and a change of stock do when nothing fails.

use futures::future::join_all;
use serde_json::json;

use crate::support::{World, clients};

#[tokio::test]
async fn an_order_takes_all_lines_and_says_how_it_had_the_lock() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("b", 10).await;
    client.set("a.b-c_D", 10).await;
    // The position is asked for below.
    client.until_released().await;
    let reply = client.order(&[("b", 1), ("a.b-c_D", 2), ("b", 3)], None).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let id = reply.json["id"].as_str().expect("an id");
    assert_eq!(reply.header("location"), Some(format!("/orders/{id}").as_str()));
    assert_eq!(reply.json["status"], "accepted");
    assert_eq!(reply.json["instance"], fleet.replicas()[0].name());
    assert_eq!(reply.json["trace_id"].as_str().map(str::len), Some(32));
    // Equal SKUs are added up, and the lines are in the order in which they were locked.
    let line = |i: usize, name: &str| reply.json["lines"][i][name].clone();
    assert_eq!(
        [line(0, "sku"), line(0, "quantity"), line(0, "on_hand_after")],
        [json!("a.b-c_D"), json!(2), json!(8)]
    );
    assert_eq!(
        [line(1, "sku"), line(1, "quantity"), line(1, "on_hand_after")],
        [json!("b"), json!(4), json!(6)]
    );
    assert_eq!(reply.json["lines"].as_array().map(Vec::len), Some(2));
    let lock = &reply.json["lock"];
    assert_eq!(
        (&lock["mode"], &lock["writer"], &lock["position"]),
        (&json!("zk-fair"), &json!("fenced"), &json!(0))
    );
    assert!(lock["token"].as_i64() > Some(0) && lock["wait_ms"].is_number() && lock["hold_ms"].is_number());

    let shown = client.get(&format!("/orders/{id}")).await;
    assert_eq!(
        (shown.status, &shown.json["status"], &shown.json["trace_id"]),
        (200, &json!("accepted"), &reply.json["trace_id"])
    );
    let stock = client.get("/stock/b").await;
    assert_eq!((&stock.json["on_hand"], &stock.json["fence"]), (&json!(6), &line(1, "token")));
    let all = client.get("/stock").await;
    assert_eq!(all.json["items"].as_array().map(Vec::len), Some(2), "{all:?}");
    world.assert_sound().await;
}

#[tokio::test]
async fn all_lines_or_none() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    client.set("b", 1).await;
    let reply = client.order(&[("a", 1), ("b", 2)], None).await;
    assert_eq!((reply.status, reply.code()), (409, "out-of-stock"), "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    let shown = ["sku", "requested", "available", "order"].map(|name| reply.json[name].clone());
    assert_eq!(shown, [json!("b"), json!(2), json!(1), json!("not-placed")]);
    assert!(reply.json["token"].is_i64(), "{reply:?}");
    let unknown = client.order(&[("a", 1), ("c", 1)], None).await;
    assert_eq!((unknown.status, unknown.code(), &unknown.json["sku"]), (404, "unknown-sku", &json!("c")));
    assert_eq!((client.on_hand("a").await, client.on_hand("b").await), (10, 1));
    assert_eq!(world.scalar("SELECT count(*) FROM orders").await, 0);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_cancellation_returns_the_stock_once_and_says_the_same_again() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 2).await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    clients[0].set("b", 10).await;
    let order = clients[0].order(&[("a", 3), ("b", 1)], None).await;
    let id = order.json["id"].as_str().expect("an id").to_owned();
    // At the same time, on both replicas, several times each.
    let replies = join_all((0..12).map(|i| clients[i % 2].cancel(&id))).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
    assert_eq!(replies[0].json["status"], "cancelled");
    assert_eq!(replies[0].json["lines"][0]["on_hand_after"], 10);
    assert_eq!((clients[0].on_hand("a").await, clients[1].on_hand("b").await), (10, 10));
    let shown = clients[0].get(&format!("/orders/{id}")).await;
    assert_eq!(shown.json["status"], "cancelled");
    assert!(shown.json["cancelled_at"].is_string());
    let missing = clients[0].cancel("01890a5d-ac96-774b-bcce-b302099a8057").await;
    assert_eq!((missing.status, missing.code()), (404, "unknown-order"));
    world.assert_sound().await;
}

#[tokio::test]
async fn set_and_restock_explain_themselves_in_the_ledger() {
    let world = World::new().await;
    for (mode, sku) in [("zk-fair", "a"), ("zk-simple", "b"), ("none", "c")] {
        let fleet = world.fleet(mode, |_| {}).await;
        let client = &clients(&fleet)[0];
        let path = format!("/stock/{sku}/restock");
        let early = client.send("POST", &path, Some(json!({"quantity": 5})), &[]).await;
        assert_eq!((early.status, early.code()), (404, "unknown-sku"), "{mode}");
        client.set(sku, 7).await;
        let more = client.send("POST", &path, Some(json!({"quantity": 5})), &[]).await;
        assert_eq!((more.status, &more.json["on_hand"]), (200, &json!(12)), "{mode}: {more:?}");
        client.set(sku, 2).await;
        assert_eq!(client.on_hand(sku).await, 2, "{mode}");
        for exit in fleet.stop(crate::support::PATIENCE).await {
            assert!(exit.1.success(), "{mode}: {exit:?}");
        }
    }
    let deltas: Vec<(String, i64)> =
        sqlx::query_as("SELECT kind, delta FROM ledger WHERE sku = 'a' ORDER BY id")
            .fetch_all(&world.pool)
            .await
            .unwrap();
    assert_eq!(deltas, [("set".to_owned(), 7), ("restock".to_owned(), 5), ("set".to_owned(), -10)]);
    world.assert_sound().await;
}
