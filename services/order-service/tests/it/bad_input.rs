//! The table "Bad input" of the design, each row over HTTP.

use serde_json::{Value, json};

use crate::support::{Client, Reply, World, clients};

fn assert_problem(reply: &Reply, status: u16, code: &str, what: &str) {
    assert_eq!((reply.status, reply.code()), (status, code), "{what}: {reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{what}");
    for member in ["type", "title", "detail"] {
        assert!(reply.json[member].is_string(), "{what}: {member}");
    }
    assert_eq!(reply.json["status"], status, "{what}");
    let trace_id = reply.json["trace_id"].as_str().unwrap_or_default();
    assert!(trace_id.len() == 32 && trace_id != "0".repeat(32), "{what}: {reply:?}");
}

async fn post(client: &Client, body: &str) -> Reply {
    client.try_send("POST", "/orders", Some(body.to_owned()), &[]).await.expect("a reply")
}

#[tokio::test]
async fn orders_that_cannot_be() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let lines = |line: Value| json!({"lines": [line]}).to_string();
    let many: Vec<Value> = (0..51).map(|_| json!({"sku": "a", "quantity": 1})).collect();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let table = [
        ("", 400, "malformed-request", "body"),
        ("{", 400, "malformed-request", "body"),
        ("\u{0}", 400, "malformed-request", "body"),
        (deep.as_str(), 400, "malformed-request", "body"),
        ("[]", 422, "invalid-order", "body"),
        ("{}", 422, "invalid-order", "lines"),
        (r#"{"lines":[]}"#, 422, "invalid-order", "lines"),
        (r#"{"lines":[{"sku":"a","quantity":1}],"x":1}"#, 422, "invalid-order", "x"),
        (&lines(json!({"sku": "a", "quantity": 0})), 422, "invalid-order", "lines[0].quantity"),
        (&lines(json!({"sku": "a", "quantity": -1})), 422, "invalid-order", "lines[0].quantity"),
        (&lines(json!({"sku": "a", "quantity": 1.5})), 422, "invalid-order", "lines[0].quantity"),
        (&lines(json!({"sku": "a", "quantity": 1_000_001})), 422, "invalid-order", "lines[0].quantity"),
        (r#"{"lines":[{"sku":"a","quantity":1e999}]}"#, 400, "malformed-request", "body"),
        (
            r#"{"lines":[{"sku":"a","quantity":99999999999999999999}]}"#,
            422,
            "invalid-order",
            "lines[0].quantity",
        ),
        (&lines(json!({"sku": "", "quantity": 1})), 422, "invalid-order", "lines[0].sku"),
        (&lines(json!({"sku": "a b", "quantity": 1})), 422, "invalid-order", "lines[0].sku"),
        (&lines(json!({"sku": "a/b", "quantity": 1})), 422, "invalid-order", "lines[0].sku"),
        (&lines(json!({"sku": "a".repeat(65), "quantity": 1})), 422, "invalid-order", "lines[0].sku"),
        (
            &lines(json!({"sku": "'; drop table stock; --", "quantity": 1})),
            422,
            "invalid-order",
            "lines[0].sku",
        ),
        (&json!({"lines": many}).to_string(), 422, "invalid-order", "lines"),
    ];
    for (body, status, code, field) in table {
        let reply = post(client, body).await;
        let what: String = body.chars().take(60).collect();
        assert_problem(&reply, status, code, &what);
        assert_eq!(
            (&reply.json["field"], &reply.json["order"]),
            (&json!(field), &json!("not-placed")),
            "{what}"
        );
    }
    let large = json!({"lines": [], "pad": "x".repeat(64 * 1024)}).to_string();
    let reply = post(client, &large).await;
    assert_problem(&reply, 413, "body-too-large", "64 KiB");
    assert_eq!(reply.json["order"], "not-placed");
    let twice = r#"{"lines":[{"sku":"a","quantity":1,"quantity":9}]}"#;
    let reply = post(client, twice).await;
    assert_problem(&reply, 400, "malformed-request", "a member that is there twice");
    assert!(reply.json["detail"].as_str().is_some_and(|detail| detail.contains("\"quantity\"")), "{reply:?}");
    let unknown = client.order(&[("nothing", 1)], None).await;
    assert_problem(&unknown, 404, "unknown-sku", "unknown SKU");
    for key in ["", "a b", &"k".repeat(256)] {
        let reply = client.order(&[("a", 1)], Some(key)).await;
        assert_problem(&reply, 422, "invalid-request", key);
        assert_eq!(reply.json["field"], "Idempotency-Key");
    }
    assert_eq!(client.on_hand("a").await, 10, "the stock is untouched");
    assert_eq!(world.scalar("SELECT count(*) FROM ledger").await, 1, "only the set");
}

/// A body of exactly the limit is read, whatever else is wrong with it.
#[tokio::test]
async fn the_limit_of_a_body_is_exact() {
    let world = World::new().await;
    let fleet = world.fleet("none", |_| {}).await;
    let client = &clients(&fleet)[0];
    for (length, status) in [(64 * 1024, 404), (64 * 1024 + 1, 413)] {
        let order = r#"{"lines":[{"sku":"a","quantity":1}]}"#;
        let body = format!("{order}{}", " ".repeat(length - order.len()));
        assert_eq!(post(client, &body).await.status, status, "{length}");
    }
}

#[tokio::test]
async fn everything_else() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    for (method, path, body, status, code) in [
        ("GET", "/", None, 404, "not-found"),
        ("GET", "/nowhere", None, 404, "not-found"),
        ("GET", "/stock/a/b/c", None, 404, "not-found"),
        ("DELETE", "/orders", None, 405, "method-not-allowed"),
        ("PUT", "/orders", None, 405, "method-not-allowed"),
        ("DELETE", "/stock/a", None, 405, "method-not-allowed"),
        ("POST", "/healthz", None, 405, "method-not-allowed"),
        ("GET", "/stock/nothing", None, 404, "unknown-sku"),
        ("GET", "/stock/a%20b", None, 422, "invalid-request"),
        ("GET", "/stock?limit=0", None, 422, "invalid-request"),
        ("GET", "/stock?page=2", None, 422, "invalid-request"),
        ("GET", "/orders/7", None, 422, "invalid-request"),
        ("GET", "/orders/01890a5d-ac96-774b-bcce-b302099a8057", None, 404, "unknown-order"),
        ("POST", "/orders/7/cancel", None, 422, "invalid-request"),
        ("PUT", "/stock/a", Some(json!({"on_hand": -1})), 422, "invalid-request"),
        ("PUT", "/stock/a", Some(json!({"on_hand": 1_000_000_000_001_i64})), 422, "invalid-request"),
        ("PUT", "/stock/a", Some(json!({"quantity": 1})), 422, "invalid-request"),
        ("POST", "/stock/a/restock", Some(json!({"quantity": 0})), 422, "invalid-request"),
        ("PUT", "/faults/work", Some(json!({"work_ms": 1})), 403, "forbidden"),
        ("POST", "/faults/session/expire", None, 403, "forbidden"),
    ] {
        let reply = client.send(method, path, body, &[]).await;
        let what = format!("{method} {path}");
        if path == "/healthz" {
            assert_eq!((reply.status, reply.code()), (status, code), "{what}");
        } else {
            assert_problem(&reply, status, code, &what);
        }
        assert_eq!(reply.header("allow").is_some(), status == 405, "{what}");
    }
    for (path, status) in [("/stock/a", 200), ("/stock/nothing", 404), ("/readyz", 200), ("/metrics", 200)] {
        let head = client.send("HEAD", path, None, &[]).await;
        assert_eq!((head.status, head.text.as_str()), (status, ""), "HEAD {path}");
    }
    assert_eq!(client.on_hand("a").await, 10, "the stock is untouched");
    // `.` and `..` are SKUs; clients resolve them in paths, so only orders and lists reach them.
    let reply = client.order(&[("..", 1)], None).await;
    assert_problem(&reply, 404, "unknown-sku", "..");
    sqlx::query("INSERT INTO stock (sku, on_hand) VALUES ('..', 3)").execute(&world.pool).await.unwrap();
    assert_eq!(client.order(&[("..", 1)], None).await.status, 201);
}

#[tokio::test]
async fn without_a_token_there_are_no_faults_and_a_limit_refuses_the_rest() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| {
        config.faults_token = None;
        config.work = std::time::Duration::from_millis(300);
        config.extra_env.push(("ORDER_REQUESTS_MAX".into(), "2".into()));
    });
    let fleet = fleet.await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    let reply =
        client.send("PUT", "/faults/work", Some(json!({"work_ms": 1})), &[("X-Fault-Token", "x")]).await;
    assert_problem(&reply, 404, "not-found", "no token, no endpoint");
    let replies = futures::future::join_all((0..8).map(|_| client.order(&[("a", 1)], None))).await;
    let (placed, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    assert_eq!(placed.len(), 2, "{replies:?}");
    for reply in refused {
        assert_problem(reply, 503, "overloaded", "over the limit");
        assert_eq!((reply.header("retry-after"), &reply.json["order"]), (Some("1"), &json!("not-placed")));
    }
    assert_eq!(client.on_hand("a").await, 8);
}
