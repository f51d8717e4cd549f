//! A fleet, with a stand-in for order-service.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use stack::RunDir;

use crate::victim::Victim;

#[tokio::test]
async fn a_fleet_starts_loses_a_replica_restarts_it_and_stops() {
    let dir = RunDir::disposable("test").expect("a folder");
    let bin = dir.sub("bin");
    fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_stack-victim"), bin.join("order-service")).expect("a link");
    let bin = bin.to_str().expect("a plain path");

    let victim = Victim::start("fleet", &[("LOCKSTOCK_BIN_DIR", bin), ("ORDER_STRAY", "of the caller")]);
    let said = &victim.said;
    let mut environment = said["environment"].clone();
    let address = environment["ORDER_HTTP_ADDR"].take();
    assert!(address.as_str().is_some_and(|address| address.starts_with("127.0.0.1:")), "{address}");
    let expected = json!({
        "DATABASE_URL": "postgres://nowhere/db",
        "ORDER_FAULTS_TOKEN": "open sesame",
        "ORDER_HTTP_ADDR": null,
        "ORDER_INSTANCE": "orders-2",
        "ORDER_LOCK_MODE": "zk-fair",
        "ORDER_LOCK_WAIT_MS": "3000",
        "ORDER_WORK_MS": "5",
        "ORDER_WRITER": "fenced",
        "ZOOKEEPER_CONNECT": "127.0.0.1:1/chroot",
        "ZOOKEEPER_SESSION_TIMEOUT_MS": "2000",
    });
    assert_eq!(environment, expected);
    let death = said["death"].as_str().expect("a death was noticed");
    assert!(death.contains("orders-2") && death.contains("SIGKILL") && death.contains("stand-in"), "{death}");
    assert_eq!((&said["ready_when_dead"], &said["ready_again"]), (&json!(false), &json!(true)));
    assert_eq!(said["exits"], json!(["orders-1: signal SIGTERM", "orders-2: signal SIGTERM"]));
    assert_eq!(said["deaths"], json!(1), "an end that was asked for is no death");
    victim.join();
}
