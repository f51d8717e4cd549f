//! Starts a supervisor in the background and waits until everything behind it is ready.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal as NixSignal;
use stack::{RunDir, Status};

use super::home::{Home, HomeError, Phase, Running};
use super::process::Identity;
use crate::guard::{Interrupts, Signal};

const READY: Duration = Duration::from_secs(90);
const STOPPED: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The supervisor's own log in the run folder.
const LOG: &str = "supervisor.log";

/// A supervisor could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The home is taken or cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The process could not be made.
    #[error("cannot start the supervisor")]
    Spawn(#[source] io::Error),
    /// It ended before everything was ready.
    #[error("the supervisor ended ({status}) before the stack was ready; the end of {log}:\n{tail}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// Its log.
        log: PathBuf,
        /// The end of its log.
        tail: String,
    },
    /// It runs, but not everything got ready.
    #[error("the stack was not ready after {} s and was stopped; see {log}", READY.as_secs())]
    NotReady {
        /// Its log.
        log: PathBuf,
    },
    /// A signal came meanwhile.
    #[error("stopped by {} while starting", signal.name)]
    Interrupted {
        /// Which.
        signal: Signal,
    },
}

/// Starts `lockstock <arguments>` as the supervisor of a run folder, with a variable set that is not for everybody's
/// eyes; returns once everything is ready.
pub async fn launch(
    home: &Home,
    dir: &RunDir,
    arguments: &[OsString],
    variable: Option<(&str, &str)>,
    interrupts: &Interrupts,
) -> Result<Status, LaunchError> {
    home.check_free()?;
    let log = dir.sub(LOG);
    let mut child = spawn(&log, arguments, variable).map_err(LaunchError::Spawn)?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(LaunchError::Spawn)? {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(LaunchError::Ended { status, log, tail: text.trim_end().to_owned() });
        }
        if let Some(state) = home.read()?
            && state.supervisor.pid == child.id()
            && state.phase == Phase::Ready
        {
            return Ok(Running { state }.status()?);
        }
        if begun.elapsed() > READY {
            end(&mut child).await;
            return Err(LaunchError::NotReady { log });
        }
        tokio::select! {
            signal = interrupts.first() => {
                end(&mut child).await;
                return Err(LaunchError::Interrupted { signal });
            }
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

fn spawn(log: &Path, arguments: &[OsString], variable: Option<(&str, &str)>) -> io::Result<Child> {
    let output = File::create(log)?;
    Command::new(std::env::current_exe()?)
        .args(arguments)
        .envs(variable)
        // While it starts it ends when we do, whatever ends us: it notices that this pipe is closed.
        .stdin(Stdio::piped())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

/// Lets it stop what it started; the kernel does so if it takes too long.
async fn end(child: &mut Child) {
    if let Some(identity) = Identity::of(child.id()) {
        identity.signal(NixSignal::SIGTERM).ok();
    }
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < STOPPED {
        tokio::time::sleep(POLL).await;
    }
    child.kill().ok();
    child.wait().ok();
}
