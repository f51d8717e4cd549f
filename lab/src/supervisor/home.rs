//! Where the state of a supervisor is kept: `up.json` and `up.lock` in the base folder, or in a run folder named by
//! the user, so that several stacks can run side by side.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stack::{RunDir, RunDirError, Status};

use super::process::Identity;

/// The folder with the state of one supervisor.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

/// What `up.json` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// The supervisor.
    pub supervisor: Identity,
    /// The run folder.
    pub run_dir: PathBuf,
    /// How far it is.
    #[serde(flatten)]
    pub phase: Phase,
}

/// How far a supervisor is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum Phase {
    /// Servers are starting.
    Starting,
    /// Everything answers.
    Ready,
    /// Servers are being stopped.
    Stopping,
    /// Everything is stopped, because of this.
    Ended {
        /// Why.
        reason: String,
    },
}

/// A supervisor that runs.
#[derive(Debug, Clone)]
pub struct Running {
    /// What it says about itself.
    pub state: State,
}

/// The state could not be read or written, or nothing runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// A supervisor has this home.
    #[error("a stack is running already, with its folder at {run_dir}; stop it with `lockstock down`")]
    Taken {
        /// Its run folder, where known.
        run_dir: String,
    },
    /// No supervisor runs here.
    #[error("no stack is running; start one with `lockstock up`{last}")]
    Nothing {
        /// How the last one ended, where known.
        last: String,
    },
    /// A file could not be used.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The base folder cannot be used.
    #[error(transparent)]
    Base(#[from] RunDirError),
}

impl Home {
    /// The home for a run folder named by the user, else the one that is used when none is named.
    pub fn find(run_dir: Option<&Path>) -> Result<Self, HomeError> {
        let path = match run_dir {
            Some(path) => path.to_owned(),
            None => RunDir::base()?,
        };
        Ok(Self { path })
    }

    fn state_path(&self) -> PathBuf {
        self.path.join("up.json")
    }

    fn file_error(path: &Path) -> impl FnOnce(io::Error) -> HomeError {
        let path = path.to_owned();
        move |source| HomeError::File { path, source }
    }

    /// Takes the home for this process, for as long as the file lives.
    pub(super) fn take(&self) -> Result<File, HomeError> {
        let path = self.path.join("up.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Self::file_error(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let run_dir = self.read()?.map_or_else(|| "?".into(), |s| s.run_dir.display().to_string());
                Err(HomeError::Taken { run_dir })
            }
            Err(TryLockError::Error(source)) => Err(HomeError::File { path, source }),
        }
    }

    /// Fails if a supervisor has this home.
    pub fn check_free(&self) -> Result<(), HomeError> {
        self.take().map(drop)
    }

    /// What was written last, by a process that may be dead.
    pub fn read(&self) -> Result<Option<State>, HomeError> {
        let path = self.state_path();
        match std::fs::read(&path) {
            Ok(bytes) => {
                let state = serde_json::from_slice(&bytes).map_err(io::Error::from);
                state.map(Some).map_err(Self::file_error(&path))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(HomeError::File { path, source }),
        }
    }

    /// The supervisor that runs here.
    pub fn running(&self) -> Result<Running, HomeError> {
        let last = match self.read()? {
            Some(state) if state.supervisor.is_alive() => return Ok(Running { state }),
            Some(State { phase: Phase::Ended { reason }, run_dir, .. }) => {
                let reason = reason.lines().next().unwrap_or_default();
                format!(" (the last one ended: {reason}; its folder: {})", run_dir.display())
            }
            Some(state) => format!(
                " (the last one, process {}, is gone without a word; its folder: {})",
                state.supervisor.pid,
                state.run_dir.display()
            ),
            None => String::new(),
        };
        Err(HomeError::Nothing { last })
    }

    /// Writes the state, at once or not at all.
    pub(super) fn write(&self, state: &State) -> Result<(), HomeError> {
        let path = self.state_path();
        let new = path.with_extension("json.new");
        let text = serde_json::to_vec_pretty(state).map_err(io::Error::from);
        text.and_then(|text| std::fs::write(&new, text))
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(Self::file_error(&path))
    }

    /// Forgets the state of a supervisor that stopped as it was told.
    pub(super) fn forget(&self) -> Result<(), HomeError> {
        let path = self.state_path();
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(HomeError::File { path, source }),
            _ => Ok(()),
        }
    }
}

impl Running {
    /// What runs and where, as the supervisor wrote it once everything was ready.
    pub fn status(&self) -> Result<Status, HomeError> {
        let path = self.state.run_dir.join("status.json");
        let bytes = std::fs::read(&path).map_err(Home::file_error(&path))?;
        serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(Home::file_error(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, HomeError, Phase, State};
    use crate::supervisor::process::Identity;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = Home::find(Some(folder.path())).expect("a home");
        (folder, home)
    }

    #[test]
    fn a_home_is_taken_by_one_at_a_time() {
        let (_folder, home) = home();
        let held = home.take().expect("free");
        assert!(matches!(home.check_free(), Err(HomeError::Taken { .. })));
        drop(held);
        home.check_free().expect("free again");
    }

    #[test]
    fn the_state_of_a_dead_process_is_recognised() {
        let (folder, home) = home();
        let me = Identity::mine().expect("alive");
        let mut state = State { supervisor: me, run_dir: folder.path().into(), phase: Phase::Ready };
        home.write(&state).expect("written");
        assert_eq!(home.running().expect("alive").state.phase, Phase::Ready);
        state.supervisor.started_ticks += 1;
        home.write(&state).expect("written");
        let error = home.running().expect_err("a stranger has that id now").to_string();
        assert!(error.contains("without a word"), "{error}");
        state.phase = Phase::Ended { reason: "zookeeper-1 died".into() };
        home.write(&state).expect("written");
        assert!(home.running().expect_err("ended").to_string().contains("zookeeper-1 died"));
        home.forget().expect("forgotten");
        assert!(home.read().expect("read").is_none());
    }
}
