//! One run of each kind: the danger is found, the cure holds, and a run that proved nothing says so.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, Finished};

/// Checks the shape of a report, and gives its only run.
fn only_run(done: &Finished) -> Value {
    let report = done.json();
    keys(&report, &["verdict", "seed", "versions", "machine", "runs"]);
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1);
    let run = runs[0].clone();
    keys(&run, &["name", "mode", "writer", "fault", "expected", "verdict", "reasons", "orders", "audit"]);
    keys(&run, &["fenced_out", "locks_lost", "faults_confirmed", "orders_per_s", "order_ms", "lock_wait_ms"]);
    keys(&run, &["recovery_ms"]);
    keys(&run["orders"], &["accepted", "out_of_stock", "failed", "unknown"]);
    keys(&run["audit"], &["oversold", "undersold", "lost", "doubled", "token_regressions"]);
    keys(&run["audit"], &["leftover_nodes", "open_transactions"]);
    keys(&run["order_ms"], &["p50", "p95", "p99"]);
    keys(&run["lock_wait_ms"], &["p50", "p95", "p99"]);
    run
}

fn keys(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value.get(name).is_some(), "{name} is missing in {value:#}");
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

#[test]
fn without_a_lock_stock_is_oversold_and_the_report_opens_offline() {
    let bench = Bench::new();
    let run =
        ["run", "oversell", "--mode", "none", "--stock", "60", "--users", "40", "--seed", "7", "--json"];
    let done = bench.run(&run).expect_code(0);
    let run = only_run(&done);
    assert_eq!((&run["expected"], &run["verdict"]), (&"invalid".into(), &"invalid".into()), "{run:#}");
    assert!(number(&run["audit"]["oversold"]) > 0, "{run:#}");
    assert_eq!(done.json()["seed"], 7);
    bench.expect_nothing_left();

    let folder = fs::read_dir(bench.path()).expect("a folder").flatten().find(|e| e.path().is_dir());
    let folder = folder.expect("the run folder is kept").path();
    let written: Value =
        serde_json::from_slice(&fs::read(folder.join("report.json")).expect("report.json")).expect("JSON");
    assert_eq!(written, done.json(), "the file is the document");
    let page = fs::read_to_string(folder.join("report.html")).expect("report.html");
    for forbidden in ["http://", "https://", "<script", "<link", "src=", "@import", "url("] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
    assert!(page.contains("<svg") && page.contains("Stock over time"));
}

#[test]
fn a_fenced_lock_sells_what_there_is() {
    let bench = Bench::new();
    let run = ["run", "oversell", "--stock", "60", "--users", "30", "--work-ms", "5", "--json"];
    let run = only_run(&bench.run(&run).expect_code(0));
    assert_eq!(run["verdict"], "valid", "{run:#}");
    assert_eq!((number(&run["orders"]["accepted"]), number(&run["audit"]["oversold"])), (60, 0), "{run:#}");
    assert!(run["lock_wait_ms"]["p99"].is_number(), "{run:#}");
    bench.expect_nothing_left();
}

#[test]
fn a_frozen_holder_oversells_without_a_fence() {
    let bench = Bench::new();
    let run = [
        "run",
        "oversell",
        "--writer",
        "plain",
        "--fault",
        "freeze-holder",
        "--expect",
        "valid",
        "--stock",
        "160",
        "--json",
    ];
    let done = bench.run(&run).expect_code(1);
    let run = only_run(&done);
    assert!(number(&run["audit"]["oversold"]) > 0, "{run:#}\n{}", done.stderr);
    assert!(number(&run["faults_confirmed"]) >= 1, "{run:#}");
    assert_eq!(done.json()["verdict"], "invalid");
    bench.expect_nothing_left();
}

#[test]
fn a_run_whose_stock_never_ended_proves_nothing() {
    let bench = Bench::new();
    let run = ["run", "oversell", "--stock", "100000", "--duration", "2", "--users", "10", "--json"];
    let run = only_run(&bench.run(&run).expect_code(2));
    assert_eq!(run["verdict"], "unknown", "{run:#}");
    bench.expect_nothing_left();
}
