//! A stack that stays: up, up again, status, locks, audit, down; and one whose supervisor is killed.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Bench, signal};

#[test]
fn a_stack_comes_up_answers_and_goes_down() {
    let bench = Bench::new();
    let up = bench.run(&["up", "--mode", "zk-simple", "--replicas", "2", "--json"]).expect_code(0).json();
    let status = bench.run(&["status", "--json"]).expect_code(0).json();
    assert_eq!(up["services"], status["services"]);
    assert!(status["postgres"]["url"].as_str().expect("a text").starts_with("postgres"));
    assert!(status["zookeeper"]["connect"].as_str().expect("a text").contains('/'));
    let services = status["services"].as_array().expect("a list");
    assert_eq!(services.len(), 2);
    for service in services {
        assert_eq!((&service["mode"], &service["writer"]), (&"zk-simple".into(), &"fenced".into()));
        assert_eq!(service["ready"], true);
        assert!(
            service["pid"].as_u64().is_some() && service["url"].is_string() && service["name"].is_string()
        );
    }

    for (tool, variable) in [("jaeger", "LOCKSTOCK_JAEGER"), ("prometheus", "LOCKSTOCK_PROMETHEUS")] {
        let why =
            status["observatory"][tool]["not"].as_str().expect("it is not there, and the stack went on");
        assert!(why.contains(tool) && why.contains(variable) && why.contains("/nonexistent"), "{why}");
    }
    let text = bench.run(&["status"]).expect_code(0).stdout;
    assert_eq!(text.matches("goes on without").count(), 2, "each is said once: {text}");

    let again = bench.run(&["up"]).expect_code(64);
    assert!(again.stderr.contains("running already"), "{}", again.stderr);

    let url = services[0]["url"].as_str().expect("a text");
    let unknown = bench.run(&["audit"]).expect_code(2);
    assert!(unknown.stdout.contains("no order was accepted"), "{}", unknown.stdout);
    order_one(url);
    let locks = bench.run(&["locks", "--json"]).expect_code(0).json();
    assert!(locks["locks"].is_array(), "{locks}");
    let audit = bench.run(&["audit", "--json"]).expect_code(0).json();
    assert_eq!(audit["verdict"], "valid", "{audit:#}");

    lost_zookeeper_data(&bench, &status, url);
    stale_node(&bench, &status, url);

    let down = bench.run(&["down", "--json"]).expect_code(0).json();
    assert_eq!((&down["stopped"], &down["killed"]), (&true.into(), &false.into()));
    bench.expect_nothing_left();
    bench.run(&["status"]).expect_code(70);
}

/// Tokens that start low again are refused until an operator resets the fences; the audit knows of the reset.
fn lost_zookeeper_data(bench: &Bench, status: &Value, url: &str) {
    let database = status["postgres"]["url"].as_str().expect("a text");
    runtime().block_on(async {
        // As if an ensemble that is gone had handed out higher tokens.
        let pool = sqlx::PgPool::connect(database).await.expect("connects");
        sqlx::raw_sql("UPDATE stock SET fence = 9e18; UPDATE ledger SET token = 9e18 WHERE kind = 'order'")
            .execute(&pool)
            .await
            .expect("spoilt");
        pool.close().await;
    });
    assert_eq!(order(url).0, 503);
    let ahead = bench.run(&["fences", "--json"]).expect_code(1).json();
    assert_eq!((&ahead["ahead"][0]["sku"], &ahead["reset"]), (&"sku-1".into(), &false.into()), "{ahead:#}");
    assert_eq!(order(url).0, 503, "looking changes nothing");
    let reset = bench.run(&["fences", "--reset", "--json"]).expect_code(0).json();
    assert_eq!(
        (&reset["ahead"][0]["fence"], &reset["ahead"][0]["on_hand"]),
        (&9_000_000_000_000_000_000_i64.into(), &4.into())
    );
    assert_eq!(order(url).0, 201);
    let none = bench.run(&["fences", "--reset", "--json"]).expect_code(0).json();
    assert_eq!(none["ahead"], serde_json::json!([]), "the fence of a token that is sound is not touched");
    let audit = bench.run(&["audit", "--json"]).expect_code(0).json();
    assert_eq!((&audit["verdict"], &audit["token_regressions"]), (&"valid".into(), &0.into()), "{audit:#}");
    runtime().block_on(async {
        let pool = sqlx::PgPool::connect(database).await.expect("connects");
        let regressions: i64 = sqlx::query_scalar("SELECT count(*) FROM audit_token_regressions")
            .fetch_one(&pool)
            .await
            .expect("a count");
        assert_eq!(regressions, 0, "the view knows of the reset, too");
        // A change without a token is found: the running stack is known to have tokens.
        sqlx::raw_sql("UPDATE ledger SET token = NULL WHERE kind = 'set'")
            .execute(&pool)
            .await
            .expect("spoilt");
        pool.close().await;
    });
    let audit = bench.run(&["audit", "--json"]).expect_code(1).json();
    assert_eq!(audit["untokened"], 1, "{audit:#}");
}

/// A node that blocks everybody is named, and removed only with its token.
fn stale_node(bench: &Bench, status: &Value, url: &str) {
    let connect = status["zookeeper"]["connect"].as_str().expect("a text");
    let (runtime, path) = (runtime(), "/locks/stock:sku-1");
    let session = runtime.block_on(async {
        let config = zk_locks::SessionConfig::new(connect).expect("an address").with_instance("stale");
        let session = zk_locks::Session::start(config);
        let mutex = session.mutex(zk_locks::Recipe::Simple, path).expect("a path");
        let within = zk_locks::Acquire::within(std::time::Duration::from_secs(20));
        // Nobody will release it.
        std::mem::forget(mutex.acquire(within).await.expect("acquires"));
        session
    });
    let locks = bench.run(&["locks", "--json"]).expect_code(0).json();
    let locks = locks["locks"].as_array().expect("a list");
    let blocker = &locks.iter().find(|lock| lock["path"] == path).expect("the lock")["entries"][0];
    assert_eq!(blocker["instance"], "stale", "{blocker:#}");
    let node = format!("{path}/{}", blocker["node"].as_str().expect("a text"));
    let token = blocker["token"].as_i64().expect("a number");
    bench.run(&["locks", "--remove", &node]).expect_code(64);
    bench.run(&["locks", "--remove", &node, "--token", &(token + 1).to_string()]).expect_code(1);
    bench.run(&["locks", "--remove", &node, "--token", &token.to_string()]).expect_code(0);
    assert_eq!(order(url).0, 201, "it is free");
    runtime.block_on(session.close(std::time::Duration::from_secs(5))).expect("closes");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

/// Sends a request, and gives the status and the document of the answer.
fn send(request: impl FnOnce(reqwest::Client) -> reqwest::RequestBuilder) -> (u16, Value) {
    runtime().block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let answer = request(client).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.expect("a document"))
    })
}

fn order(url: &str) -> (u16, Value) {
    let order = serde_json::json!({ "lines": [{ "sku": "sku-1", "quantity": 1 }] });
    send(|client| client.post(format!("{url}/orders")).json(&order))
}

/// Sets a stock of five and orders one of it.
fn order_one(url: &str) {
    let stock = serde_json::json!({ "on_hand": 5 });
    let (status, set) = send(|client| client.put(format!("{url}/stock/sku-1")).json(&stock));
    assert!((200..300).contains(&status), "{status}: {set:#}");
    let (status, placed) = order(url);
    assert_eq!(status, 201, "{placed:#}");
    assert_eq!(placed["lines"][0]["on_hand_after"], 4, "{placed:#}");
}

#[test]
fn a_killed_supervisor_takes_everything_along_and_is_recognised_as_dead() {
    let bench = Bench::new();
    let up = bench.run(&["up", "--replicas", "1", "--json"]).expect_code(0).json();
    let supervisor = up["supervisor_pid"].as_u64().expect("a number");
    signal(u32::try_from(supervisor).expect("a process id"), Signal::SIGKILL);
    bench.expect_nothing_left();
    let status = bench.run(&["status"]).expect_code(70);
    assert!(status.stderr.contains("without a word"), "{}", status.stderr);
    let down = bench.run(&["down", "--json"]).expect_code(0).json();
    assert_eq!(down["stopped"], false, "a stale state file is no running stack");
}

#[test]
fn an_up_that_is_killed_while_it_starts_leaves_nothing() {
    let bench = Bench::new();
    let up = bench.start(&["up", "--replicas", "1"]);
    bench.process("QuorumPeerMain");
    signal(up.pid(), Signal::SIGKILL);
    bench.expect_nothing_left();
    let status = bench.run(&["status"]).expect_code(70);
    assert!(status.stderr.contains("gone before it was ready"), "{}", status.stderr);
}
