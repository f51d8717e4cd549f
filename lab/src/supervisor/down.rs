//! Stops a supervisor and with it everything it started, in order and bounded.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;

use super::home::{Home, HomeError, Running};

/// Longer than a supervisor may take: services drain for twelve seconds at most, servers stop after them.
const STOPPED: Duration = Duration::from_secs(40);
const KILLED: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// What was stopped.
#[derive(Debug, Clone)]
pub struct Down {
    /// The supervisor's process id.
    pub pid: u32,
    /// Its run folder, which is kept.
    pub run_dir: PathBuf,
    /// How long it took.
    pub took: Duration,
    /// Whether it had to be killed; the kernel then killed everything it had started.
    pub killed: bool,
}

/// A stack could not be stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownError {
    /// Nothing runs, or the state cannot be read.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The supervisor may not be signalled.
    #[error("cannot signal the supervisor, process {pid}")]
    Signal {
        /// Its process id.
        pid: u32,
        /// Why.
        source: Errno,
    },
    /// It is still there.
    #[error("the supervisor, process {pid}, is still there after SIGKILL")]
    Stuck {
        /// Its process id.
        pid: u32,
    },
}

/// Tells the supervisor to stop, and waits until it and its servers are gone.
pub async fn down(home: &Home) -> Result<Down, DownError> {
    let Running { state } = home.running()?;
    let pid = state.supervisor.pid;
    let begun = Instant::now();
    let send = |signal| match state.supervisor.signal(signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(source) => Err(DownError::Signal { pid, source }),
    };
    let gone = async |within: Duration| {
        let until = Instant::now() + within;
        while state.supervisor.is_alive() && Instant::now() < until {
            tokio::time::sleep(POLL).await;
        }
        !state.supervisor.is_alive()
    };
    send(Signal::SIGTERM)?;
    let killed = !gone(STOPPED).await;
    if killed {
        send(Signal::SIGKILL)?;
        if !gone(KILLED).await {
            return Err(DownError::Stuck { pid });
        }
        home.forget()?;
    }
    Ok(Down { pid, run_dir: state.run_dir, took: begun.elapsed(), killed })
}
