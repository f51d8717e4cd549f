//! One folder that holds everything of a run: data, logs, reports.
//!
//! Promised: nobody but root and this user can list it; a disposable one goes even when this process is killed.
//! Not promised: that old folders go by themselves.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use nix::unistd::Uid;
use time::{OffsetDateTime, macros::format_description};

use crate::{Watchdog, spawn::Place, sweeper::Sweeper};

/// Others may pass through (PostgreSQL must when it drops root), but not look around.
const PASS_THROUGH: u32 = 0o711;
/// Folders that this process has made.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// The run folder cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot {doing} the run folder {}", path.display())]
pub struct RunDirError {
    /// What was attempted.
    pub doing: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

/// One folder for everything of a run, and the register of what died in it. Kept unless removed or disposable.
#[derive(Debug)]
pub struct RunDir {
    place: Place,
    sweeper: Mutex<Option<Sweeper>>,
}

impl RunDir {
    /// The folder of all runs of this user: `$LOCKSTOCK_RUN_BASE`, else `<temp dir>/lockstock-<uid>`; made if it is
    /// not there.
    pub fn base() -> Result<PathBuf, RunDirError> {
        let (path, shared) = match env::var_os("LOCKSTOCK_RUN_BASE") {
            Some(base) => (PathBuf::from(base), false),
            None => (env::temp_dir().join(format!("lockstock-{}", Uid::current())), true),
        };
        let failed = |source| RunDirError { doing: "make the folder of", path: path.clone(), source };
        fs::DirBuilder::new().recursive(true).mode(PASS_THROUGH).create(&path).map_err(failed)?;
        // In a folder that everybody may write to, somebody else could have made it before us.
        let meta = fs::symlink_metadata(&path).map_err(failed)?;
        if shared && (!meta.is_dir() || meta.uid() != Uid::current().as_raw()) {
            let whose = "it belongs to somebody else; set LOCKSTOCK_RUN_BASE to a folder of yours";
            return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, whose)));
        }
        path.canonicalize().map_err(failed)
    }

    /// Makes `<base>/<prefix>-<utc stamp>-<pid>`; the base is `$LOCKSTOCK_RUN_BASE`, else
    /// `<temp dir>/lockstock-<uid>`. Later folders of one process have their number at the end, so that a name is
    /// never used twice, not even when the former folder is gone.
    pub fn create(prefix: &str) -> Result<Self, RunDirError> {
        let base = Self::base()?;
        let stamp = OffsetDateTime::now_utc()
            .format(format_description!("[year][month][day]T[hour][minute][second]Z"))
            .unwrap_or_default();
        let name = format!("{prefix}-{stamp}-{}", process::id());
        loop {
            let suffix = match RUNS.fetch_add(1, Ordering::Relaxed) {
                0 => String::new(),
                earlier => format!("-{}", earlier + 1),
            };
            let path = base.join(format!("{name}{suffix}"));
            match fs::DirBuilder::new().mode(PASS_THROUGH).create(&path) {
                Ok(()) => return Ok(Self::at(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(RunDirError { doing: "make", path, source }),
            }
        }
    }

    /// As [`create`](Self::create), and the folder goes when this value is dropped or this process ends,
    /// however it ends.
    pub fn disposable(prefix: &str) -> Result<Self, RunDirError> {
        let dir = Self::create(prefix)?;
        let sweeper = Sweeper::start(dir.path()).map_err(|source| RunDirError {
            doing: "watch over",
            path: dir.path().into(),
            source,
        })?;
        *dir.sweeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(sweeper);
        Ok(dir)
    }

    /// A folder that exists.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let given = path.into();
        let opened = given.canonicalize().and_then(|path| fs::read_dir(&path).map(|_| path));
        opened.map(Self::at).map_err(|source| RunDirError { doing: "open", path: given, source })
    }

    fn at(path: PathBuf) -> Self {
        Self { place: Place { path, watchdog: Watchdog::new() }, sweeper: Mutex::new(None) }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// The path of something in it; makes nothing.
    pub fn sub(&self, name: impl AsRef<Path>) -> PathBuf {
        self.place.path.join(name)
    }

    /// The unexpected deaths of this run's children.
    pub fn watchdog(&self) -> &Watchdog {
        &self.place.watchdog
    }

    /// Removes the folder and all that is in it. Stop what runs in it first.
    pub fn remove(self) -> Result<(), RunDirError> {
        let path = self.place.path.clone();
        fs::remove_dir_all(&path).map_err(|source| RunDirError { doing: "remove", path, source })
    }
}
