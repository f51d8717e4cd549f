//! One folder that holds everything of a run: data, logs, reports.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::Watchdog;

/// The run folder cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot {doing} the run folder {path}", path = path.display())]
pub struct RunDirError {
    /// What was attempted.
    pub doing: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

/// One folder for everything of a run, and the register of what died in it. Kept unless removed.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    watchdog: Watchdog,
}

impl RunDir {
    /// Makes `<base>/<prefix>-<utc stamp>-<pid>`; the base is `$LOCKSTOCK_RUN_BASE`, else
    /// `<temp dir>/lockstock-<uid>`.
    pub fn create(_prefix: &str) -> Result<Self, RunDirError> {
        todo!()
    }

    /// As [`create`](Self::create), and the folder goes when this value is dropped or this process ends,
    /// however it ends.
    pub fn disposable(_prefix: &str) -> Result<Self, RunDirError> {
        todo!()
    }

    /// A folder that exists.
    pub fn open(_path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        todo!()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it; makes nothing.
    pub fn sub(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The unexpected deaths of this run's children.
    pub fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// Removes the folder and all that is in it. Stop what runs in it first.
    pub fn remove(self) -> Result<(), RunDirError> {
        todo!()
    }
}
