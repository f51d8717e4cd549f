//! Runs the test-only binary.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

pub(crate) struct Victim {
    process: Child,
    pub(crate) said: Value,
}

impl Victim {
    /// Starts it in a role and waits for its document.
    pub(crate) fn start(role: &str, env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stack-victim"));
        command
            .arg(role)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut process = command.spawn().expect("the victim starts");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        let said = serde_json::from_str(&line).expect("it says one document before it ends");
        Self { process, said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("a child can be killed");
    }

    /// Waits for its own end.
    pub(crate) fn join(mut self) {
        let status = self.process.wait().expect("a child can be waited for");
        assert!(status.success(), "the victim ended with {status}");
    }
}
