//! Whatever ends a run early: nothing stays behind, and it is said what happened.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Bench, Started, signal};

const STOPPED: Duration = Duration::from_secs(30);

/// A run that goes on for longer than the test looks at it.
fn long_run(bench: &Bench) -> Started {
    let mut run = bench.start(&["run", "oversell", "--stock", "100000", "--users", "20"]);
    run.expect_said("orders accepted 1");
    run
}

#[test]
fn ctrl_c_stops_everything_in_order() {
    let bench = Bench::new();
    let run = long_run(&bench);
    signal(run.pid(), Signal::SIGINT);
    let done = run.finish(STOPPED).expect_code(130);
    assert!(
        done.stderr.contains("stopped by SIGINT") && done.stderr.contains("run folder is kept"),
        "{}",
        done.stderr
    );
    bench.expect_nothing_left();
}

#[test]
fn a_child_killed_during_a_run_is_named_and_nothing_stays() {
    let bench = Bench::new();
    let run = long_run(&bench);
    signal(bench.process("QuorumPeerMain"), Signal::SIGKILL);
    let done = run.finish(STOPPED).expect_code(70);
    assert!(done.stderr.contains("zookeeper-") && done.stderr.contains("SIGKILL"), "{}", done.stderr);
    bench.expect_nothing_left();
}

#[test]
fn a_killed_load_is_named_and_nothing_stays() {
    let bench = Bench::new();
    let run = long_run(&bench);
    signal(bench.process("loadtest oversell"), Signal::SIGKILL);
    let done = run.finish(STOPPED).expect_code(70);
    assert!(done.stderr.contains("oversell-load") && done.stderr.contains("SIGKILL"), "{}", done.stderr);
    bench.expect_nothing_left();
}

#[test]
fn a_stopped_database_is_named_and_nothing_stays() {
    let bench = Bench::new();
    let run = long_run(&bench);
    // Fast shutdown, as an administrator would do it.
    signal(bench.process("postgres -D"), Signal::SIGINT);
    let done = run.finish(STOPPED).expect_code(70);
    assert!(done.stderr.contains("postgres"), "{}", done.stderr);
    bench.expect_nothing_left();
}

#[test]
fn killing_lockstock_itself_leaves_nothing() {
    let bench = Bench::new();
    let run = long_run(&bench);
    signal(run.pid(), Signal::SIGKILL);
    bench.expect_nothing_left();
}
