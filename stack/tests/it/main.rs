//! The servers are real: PostgreSQL, ZooKeeper on Java. `scripts/setup` installs what is missing.

mod child;
mod crash;
mod fleet;
mod frames;
mod house_rules;
mod loopback;
mod postgres;
mod programs;
mod proxy;
mod shared;
mod victim;
mod zookeeper;

use std::{future::Future, time::Duration};

use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};

/// Waits until something is so; the deadline is for a broken build, not for a slow machine.
async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), wait).await.is_ok(), "never happened: {what}");
}

/// SIGKILL from outside, that the owner of the process did not ask for.
fn kill(pid: u32) {
    signal::kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it runs");
}
