//! Wrong usage, help, and what is said when nothing runs. No server is needed.

use crate::support::Bench;

#[test]
fn wrong_usage_is_64_and_says_what_would_be_right() {
    let bench = Bench::new();
    for (arguments, hint) in [
        (&["fly"][..], "--help"),
        (&["run", "oversell", "--mode", "redlock"], "zk-fair"),
        (&["run", "oversell", "--fault", "melt-holder"], "expire-holder"),
        (&["run", "oversell", "--mode", "none", "--fault", "freeze-holder"], "no holder"),
        (&["run", "oversell", "--mode", "none", "--writer", "fenced"], "--writer plain"),
        (&["run", "oversell", "--writer", "plain", "--fault", "expire-holder"], "--expect"),
        (&["run", "oversell", "--users", "0"], "--users"),
        (&["audit", "--database-url", "postgres://x"], "--zookeeper"),
        (&["up", "--mode", "none", "--writer", "fenced"], "--writer plain"),
    ] {
        let done = bench.run(arguments).expect_code(64);
        assert!(done.stderr.contains(hint), "{arguments:?} should mention {hint}:\n{}", done.stderr);
    }
}

#[test]
fn help_teaches_with_examples_and_exit_codes() {
    let bench = Bench::new();
    let help = bench.run(&["--help"]).expect_code(0).stdout;
    for part in ["lockstock demo", "lockstock run oversell --mode none", "64 wrong usage", "2 unknown"] {
        assert!(help.contains(part), "{part} in\n{help}");
    }
    assert!(bench.run(&["run", "oversell", "--help"]).expect_code(0).stdout.contains("freeze-holder"));
}

#[test]
fn nothing_running_is_said_in_either_language() {
    let bench = Bench::new();
    let said = bench.run(&["status", "--json"]).expect_code(70).json();
    assert!(said["error"].as_str().expect("a text").contains("lockstock up"), "{said}");
    assert!(bench.run(&["locks"]).expect_code(70).stderr.contains("no stack is running"));
    let down = bench.run(&["down", "--json"]).expect_code(0).json();
    assert_eq!(down["stopped"], false);
}
