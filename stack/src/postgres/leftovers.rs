//! Processes of one PostgreSQL server that have lost their postmaster.
//!
//! Its backends leave its process group and, once it is dead, have another parent. What they keep is their title,
//! `postgres: <cluster name>: …`, which everybody may read.

use std::fs;

use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};

/// The processes whose title names the cluster.
fn of(cluster: &str) -> Vec<Pid> {
    let title = format!("postgres: {cluster}: ");
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(title.as_bytes()))
    };
    ids.filter(ours).map(Pid::from_raw).collect()
}

/// Kills them; false when there were none.
pub(super) fn kill(cluster: &str) -> bool {
    let left = of(cluster);
    for &pid in &left {
        // It may have ended since.
        signal::kill(pid, Signal::SIGKILL).ok();
    }
    !left.is_empty()
}
