//! What is missing is named, with where it was looked for and the way to install it.

use serde_json::Value;

use crate::victim::Victim;

#[tokio::test]
async fn a_missing_program_names_itself_and_the_remedy() {
    let nowhere = "/nonexistent";
    let victim = Victim::start(
        "missing",
        &[
            ("LOCKSTOCK_POSTGRES_BIN_DIR", nowhere),
            ("ZOOKEEPER_CLASSPATH", "/nonexistent/zookeeper.jar"),
            ("LOCKSTOCK_BIN_DIR", nowhere),
        ],
    );
    let missing: Vec<&str> =
        victim.said["missing"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let expected = [
        ("PostgreSQL server", "scripts/setup"),
        ("ZooKeeper", "scripts/setup"),
        ("order-service", "make build"),
        ("loadtest", "make build"),
    ];
    assert_eq!(missing.len(), expected.len(), "{missing:?}");
    for (line, (program, remedy)) in missing.iter().zip(expected) {
        assert!(line.contains(program) && line.contains(remedy) && line.contains(nowhere), "{line}");
    }
    let refused = victim.said["refused"].as_str().expect("the stack does not start");
    assert!(refused.contains("scripts/setup"), "{refused}");
    victim.join();
}
