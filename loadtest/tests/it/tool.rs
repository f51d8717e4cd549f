//! Runs the binary and reads what it leaves.

use std::{process::Stdio, time::Duration};

use loadtest::history::{self, Record};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) summary: Value,
    pub(crate) history: Vec<Record>,
    pub(crate) stderr: String,
}

/// Runs `loadtest` with these arguments, a history of its own and `--json`; fails after a minute.
pub(crate) async fn loadtest(arguments: &[&str], hosts: &[String]) -> Ran {
    let dir = TempDir::new().expect("a folder");
    let history = dir.path().join("history.jsonl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    command.args(arguments).arg("--json").arg("--history").arg(&history).current_dir(dir.path());
    for host in hosts {
        command.args(["--host", host]);
    }
    let child = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_mins(1), child).await.expect("ends").expect("runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert!(left.len() <= 1, "only the history is left: {left:?}");
    Ran {
        status: output.status.code().expect("a status"),
        summary: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        history: history::read(&history).unwrap_or_default(),
        stderr,
    }
}
