//! `lockstock up` with the Jaeger and the Prometheus that the compose stack's images hold. Here because they are made here.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stack::RunDir;
use tokio::process::Command;

use crate::project::{Project, root};

const SHOWN: Duration = Duration::from_mins(1);

/// A stack of `up`.
struct Native {
    base: RunDir,
    jaeger: PathBuf,
    prometheus: PathBuf,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_stack_is_seen_in_jaeger_and_prometheus() {
    let images = Project::of("programs", &[]).await;
    let base = RunDir::disposable("native-test").expect("a folder");
    let prometheus = base.sub("prometheus");
    images.copy_out("prometheus", "/bin/prometheus", &prometheus).await;
    let native = Native { jaeger: built_jaeger().await, prometheus, base };

    let up = native.lockstock(&["up", "--replicas", "2", "--json"]).await;
    let at =
        |tool: &str| up["observatory"][tool]["at"].as_str().unwrap_or_else(|| panic!("{up:#}")).to_owned();
    let (jaeger, prometheus) = (at("jaeger"), at("prometheus"));
    let service = up["services"][0]["url"].as_str().expect("an address");
    let http = reqwest::Client::new();
    let set = http.put(format!("{service}/stock/sku-1")).json(&json!({ "on_hand": 5 })).send().await;
    assert!(set.expect("an answer").status().is_success());
    let order = json!({ "lines": [{ "sku": "sku-1", "quantity": 1 }] });
    let placed: Value = http
        .post(format!("{service}/orders"))
        .json(&order)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    let trace = placed["trace_id"].as_str().unwrap_or_else(|| panic!("{placed:#}"));
    shows(&format!("{jaeger}/api/traces/{trace}"), |found| found.to_string().contains("order.place")).await;
    shows(&format!("{prometheus}/api/v1/query?query=up"), |found| {
        let of_each = found["data"]["result"].as_array().map_or(&[][..], Vec::as_slice);
        of_each.len() == 2 && of_each.iter().all(|replica| replica["value"][1] == "1")
    })
    .await;

    native.lockstock(&["down", "--json"]).await;
    for gone in [jaeger, prometheus] {
        http.get(&gone).send().await.expect_err("it ended with the stack");
    }
    images.down().await;
}

impl Native {
    async fn lockstock(&self, arguments: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstock"))
            .args(arguments)
            .env("LOCKSTOCK_RUN_BASE", self.base.path())
            .env("LOCKSTOCK_JAEGER", &self.jaeger)
            .env("LOCKSTOCK_PROMETHEUS", &self.prometheus)
            .stdin(Stdio::null())
            .output()
            .await
            .expect("lockstock runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

async fn built_jaeger() -> PathBuf {
    let built = Command::new(root().join("scripts/build-jaeger")).output().await.expect("it runs");
    assert!(built.status.success(), "{built:?}");
    Path::new(String::from_utf8(built.stdout).expect("UTF-8").trim()).to_owned()
}

/// Waits until a page says it.
async fn shows(url: &str, says: impl Fn(&Value) -> bool) {
    let begun = Instant::now();
    loop {
        let answer = reqwest::get(url).await.expect("it answers");
        let found: Value = answer.json().await.unwrap_or_default();
        if says(&found) {
            return;
        }
        assert!(begun.elapsed() < SHOWN, "{url}: {found:#}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
