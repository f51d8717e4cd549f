//! Why a server could not be started.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{AskError, Child, Exit, Missing, RunDirError, child::TAIL_LINES};

/// A server could not be started, or did not become ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A program is not installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The run folder cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// A file or a process could not be made.
    #[error("cannot {doing} ({path})", path = path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{name} ended with {exit} before it was ready; the end of its log:\n{log_tail}")]
    Exited {
        /// The child's name in the run.
        name: String,
        /// How it ended.
        exit: Exit,
        /// The end of its log.
        log_tail: String,
    },
    /// It runs, but was not ready within the deadline.
    #[error("{name} was not ready after {} s: {last}; the end of its log:\n{log_tail}", waited.as_secs())]
    NotReady {
        /// The child's name in the run.
        name: String,
        /// How long was waited.
        waited: Duration,
        /// The last answer to "are you ready?".
        last: String,
        /// The end of its log.
        log_tail: String,
    },
    /// It runs, but does not do what is asked of it.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// Asks until the answer is yes, the child has ended, or the deadline has passed.
pub(crate) async fn until_ready<Ask>(
    child: &Child,
    patience: Duration,
    poll: Duration,
    mut ask: Ask,
) -> Result<(), StartError>
where
    Ask: AsyncFnMut() -> Result<(), String>,
{
    let deadline = Instant::now() + patience;
    loop {
        let answer = ask().await;
        // Asked after the answer: another server may have answered on the port that ours could not get.
        if let Some(exit) = child.exit() {
            let log_tail = child.log_tail(TAIL_LINES);
            return Err(StartError::Exited { name: child.name().into(), exit, log_tail });
        }
        match answer {
            Ok(()) => return Ok(()),
            Err(last) if Instant::now() > deadline => {
                let log_tail = child.log_tail(TAIL_LINES);
                return Err(StartError::NotReady {
                    name: child.name().into(),
                    waited: patience,
                    last,
                    log_tail,
                });
            }
            Err(_) => {
                child.wait_exit(poll).await;
            }
        }
    }
}
