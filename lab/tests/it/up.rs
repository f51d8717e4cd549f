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

    let again = bench.run(&["up"]).expect_code(64);
    assert!(again.stderr.contains("running already"), "{}", again.stderr);

    let url = services[0]["url"].as_str().expect("a text");
    order_one(url);
    let locks = bench.run(&["locks", "--json"]).expect_code(0).json();
    assert!(locks["locks"].is_array(), "{locks}");
    let audit = bench.run(&["audit", "--json"]).expect_code(0).json();
    assert_eq!(audit["verdict"], "valid", "{audit:#}");

    let down = bench.run(&["down", "--json"]).expect_code(0).json();
    assert_eq!((&down["stopped"], &down["killed"]), (&true.into(), &false.into()));
    bench.expect_nothing_left();
    bench.run(&["status"]).expect_code(70);
}

/// Sets a stock of five and orders one of it.
fn order_one(url: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let set = serde_json::json!({ "on_hand": 5 });
        let answer = client.put(format!("{url}/stock/sku-1")).json(&set).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        let order = serde_json::json!({ "lines": [{ "sku": "sku-1", "quantity": 1 }] });
        let answer = client.post(format!("{url}/orders")).json(&order).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 201, "{answer:?}");
        let placed: Value = answer.json().await.expect("a document");
        assert_eq!(placed["lines"][0]["on_hand_after"], 4, "{placed:#}");
    });
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
