//! One call of the `docker` client.

use std::{
    io,
    process::{self, Stdio},
    time::Duration,
};

use tokio::{process::Command, time::timeout};

/// A restart waits for the process to end by itself, at most half a minute here.
const PATIENCE: Duration = Duration::from_secs(90);

/// The engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// There is no `docker` client, or it cannot be run.
    #[error("the program docker cannot be run: is Docker installed?")]
    NoClient(#[source] io::Error),
    /// It said no.
    #[error("docker {command}: {said}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// It said nothing.
    #[error("docker {command}: no answer within {} s", PATIENCE.as_secs())]
    Silent {
        /// What was asked.
        command: String,
    },
    /// The project has no such container.
    #[error(
        "the compose project {project} has no container of {service}: does the stack run? `docker compose up -d --wait`"
    )]
    NoContainer {
        /// The project.
        project: String,
        /// The service.
        service: String,
    },
    /// An answer that makes no sense.
    #[error("docker {command}: not understood: {said}")]
    Strange {
        /// What was asked.
        command: String,
        /// The answer.
        said: String,
    },
}

/// Runs the client and gives what it printed, without the last line end.
pub(super) async fn docker<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String, EngineError> {
    let arguments: Vec<&str> = arguments.into_iter().collect();
    let (status, stdout, stderr) = output(&arguments).await?;
    if status.success() {
        Ok(stdout)
    } else {
        Err(EngineError::Refused { command: arguments.join(" "), said: format!("{stderr}{stdout}") })
    }
}

/// As [`docker`], both streams in one text, whatever the exit status.
pub(super) async fn docker_says(arguments: &[&str]) -> Result<String, EngineError> {
    let (_, stdout, stderr) = output(arguments).await?;
    Ok(format!("{stdout}\n{stderr}"))
}

/// As [`docker`], whatever the exit status.
pub(super) async fn docker_stdout(arguments: &[&str]) -> Result<String, EngineError> {
    Ok(output(arguments).await?.1)
}

async fn output(arguments: &[&str]) -> Result<(process::ExitStatus, String, String), EngineError> {
    let ended = Command::new("docker").args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    let silent = |_| EngineError::Silent { command: arguments.join(" ") };
    let output = timeout(PATIENCE, ended).await.map_err(silent)?.map_err(EngineError::NoClient)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Ok((output.status, text(&output.stdout), text(&output.stderr)))
}

/// Mends what was broken: when asked to, else when dropped.
#[derive(Debug)]
#[must_use = "dropped, it mends at once"]
pub struct Undo {
    arguments: Option<Vec<String>>,
}

impl Undo {
    /// Breaks something. Armed before, so that a caller that goes away midway leaves nothing broken.
    pub(super) async fn after(doing: &[&str], undoing: &[&str]) -> Result<Self, EngineError> {
        let arguments = undoing.iter().map(|&argument| argument.to_owned()).collect();
        let mut undo = Self { arguments: Some(arguments) };
        match docker(doing.iter().copied()).await {
            Ok(_) => Ok(undo),
            Err(error) => {
                undo.arguments = None;
                Err(error)
            }
        }
    }

    /// Mends it now.
    ///
    /// # Cancel safety
    /// Dropped midway, it is mended all the same.
    pub async fn now(mut self) -> Result<(), EngineError> {
        let arguments = self.arguments.clone().unwrap_or_default();
        docker(arguments.iter().map(String::as_str)).await?;
        self.arguments = None;
        Ok(())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let Some(arguments) = &self.arguments else { return };
        let ended = process::Command::new("docker").args(arguments).stdin(Stdio::null()).output();
        if !ended.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("docker {}: not mended: {ended:?}", arguments.join(" "));
        }
    }
}
