//! The compose stack: brought up by testcontainers, put under load, broken through its engine, judged by `lockstock`.
//!
//! `make test-compose` makes the images and runs this; plain `cargo test` does not. `COMPOSE_FILE` says which stack it is,
//! as for `docker compose` itself. Without an engine each test fails and says what is missing.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod jaeger;
mod native;
mod project;
mod run;

use jaeger::Searches;
use project::Project;

/// Whoever is struck is struck inside a critical section, not just before or after, …
const SLOW: (&str, &str) = ("ORDER_WORK_MS", "50");
/// … and goes on with it when it wakes up, instead of finding that nobody waits for it any more.
const PATIENT: (&str, &str) = ("ORDER_LOCK_WAIT_MS", "30000");

/// As many orders as Jaeger keeps traces of, each followed from the client to the statement, and each link to the span it
/// names; then dashboards, exemplars and alerts.
#[tokio::test(flavor = "multi_thread")]
async fn orders_read_like_stories_in_jaeger() {
    let stack = Project::up("stories", &[]).await;
    stack.expect_success("scripts/check-stack", &[]).await;
    stack.down().await;
}

/// The alerts, by the program that will raise them.
#[tokio::test(flavor = "multi_thread")]
async fn alert_rules_do_what_their_tests_say() {
    let stack = Project::of("rules", &[]).await;
    let promtool =
        ["compose", "run", "--rm", "--no-deps", "--env", "TMPDIR=/prometheus", "--entrypoint", "promtool"];
    let rules = ["prometheus", "test", "rules", "/etc/prometheus/tests/lockstock.yaml"];
    stack.expect_success("docker", &[&promtool[..], &rules[..]].concat()).await;
    stack.down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_are_killed_cut_off_frozen_or_restarted_do_not_oversell() {
    let stack = Project::up("replicas", &[SLOW, PATIENT, ("ORDER_FAULTS_TOKEN", "compose-test")]).await;
    let faults = ["expire-holder", "freeze-holder", "kill-holder", "cut-holder", "rolling-restart"];
    let run = stack.oversell(&faults).await;
    run.expect_valid_and_struck(&faults);
    let found = Searches::of(&run).await;
    assert!(found.slowest_orders > 0, "the slowest orders are not found: {found:?}");
    assert_eq!(found.fenced_writes, run.fenced_writes(), "each write that the fence refused has its trace");
    stack.down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_killed_cut_off_or_restarted_do_not_make_it_oversell() {
    let stack = Project::up("servers", &[SLOW]).await;
    let faults = ["kill-leader", "cut-server", "restart-postgres"];
    let run = stack.oversell(&faults).await;
    run.expect_valid_and_struck(&faults);
    stack.down().await;
}
