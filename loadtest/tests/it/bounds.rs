//! Bounded in count and in time, always; and what happens when nothing can be done.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use loadtest::history::{self, Claim, Op, by_key};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tokio::process::Command;

use crate::{
    shop::{Fault, Shop},
    tool::loadtest,
};

#[tokio::test]
async fn the_count_is_a_limit() {
    let shop = Shop::open(1, |_, _| Fault::None).await;
    let ran =
        loadtest(&["oversell", "--users", "7", "--stock", "100000", "--orders-max", "50"], &shop.hosts).await;
    assert_eq!(ran.summary["ended"], "count");
    assert_eq!(shop.books().placed.len(), 50);
}

#[tokio::test]
async fn the_time_is_a_limit_although_nobody_answers() {
    // Orders hang and a settling pass cannot settle either; the set-up works.
    let shop = Shop::open(2, |_, _| Fault::Hang).await;
    let began = Instant::now();
    let arguments =
        ["oversell", "--users", "5", "--duration", "1", "--attempt-timeout-ms", "500", "--settle", "1"];
    let ran = loadtest(&arguments, &shop.hosts).await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.summary["ended"], "time");
    assert_eq!(ran.summary["orders"]["accepted"], 0);
    let keys = by_key(&ran.history);
    assert!(!keys.is_empty() && keys.values().all(|key| key.claim() == Claim::Unknown));
    assert_eq!(ran.summary["orders"]["unknown"].as_u64(), Some(keys.len() as u64));
    assert_eq!(ran.history.len() as u64, shop.books().requests());
}

#[tokio::test]
async fn what_the_deadline_cut_off_is_settled_in_the_final_pass() {
    // The first orders lose their replies, and the attempts allowed run out at once.
    let shop = Shop::open(2, |_, request| if request <= 5 { Fault::LoseReply } else { Fault::None }).await;
    let arguments = ["oversell", "--users", "5", "--stock", "20", "--attempts-max", "1"];
    let ran = loadtest(&arguments, &shop.hosts).await;
    assert_eq!(ran.summary["orders"]["unknown"], 0, "{}", ran.stderr);
    assert_eq!(ran.summary["orders"]["accepted"], 20);
    assert_eq!(shop.books().placed.len(), 20);
    let settled = ran.history.iter().filter(|record| record.op == Op::Order && record.attempt == 2).count();
    assert_eq!(settled, 5);
}

#[tokio::test]
async fn wrong_usage_and_no_server_have_statuses_of_their_own() {
    let ran = loadtest(&["oversell", "--users", "0"], &[]).await;
    assert_eq!(ran.status, 64, "{}", ran.stderr);
    let shop = Shop::open(1, |_, _| Fault::None).await;
    let ran =
        loadtest(&["mixed", "--summary", "/nowhere/summary.json", "--steps-max", "5"], &shop.hosts).await;
    assert_eq!(ran.status, 70, "{}", ran.stderr);
    assert!(ran.stderr.contains("/nowhere/summary.json"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_named() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let ran = loadtest(&["oversell"], std::slice::from_ref(&closed)).await;
    assert_eq!(ran.status, 70);
    assert!(ran.stderr.contains(&closed) && ran.stderr.contains("refused"), "{}", ran.stderr);
    assert!(!ran.history.is_empty(), "the attempts at the set-up are recorded");
}

#[tokio::test]
async fn told_to_stop_it_stops_settles_and_sums_up() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let shop =
            Shop::open(2, |_, request| if request % 5 == 1 { Fault::LoseReply } else { Fault::None }).await;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("history.jsonl");
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        command.args(["mixed", "--json", "--duration", "60", "--steps-max", "100000000"]);
        command.arg("--history").arg(&path);
        for host in &shop.hosts {
            command.args(["--host", host]);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn();
        let child = child.expect("starts");
        let deadline = Instant::now() + Duration::from_secs(20);
        while shop.books().placed.is_empty() {
            assert!(Instant::now() < deadline, "orders come");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let pid = Pid::from_raw(child.id().expect("runs").try_into().expect("a pid"));
        kill(pid, signal).expect("told");
        let output = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output());
        let output = output.await.expect("ends soon").expect("ends");
        assert!(output.status.success());
        let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
        assert_eq!(summary["ended"], "interrupted");
        assert_eq!(summary["orders"]["unknown"], 0);
        let records = history::read(&path).expect("a history");
        assert_eq!(records.len() as u64, shop.books().requests());
    }
}
