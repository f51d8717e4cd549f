//! What the audit is given.

use std::{error::Error, fmt, path::Path, time::Duration};

use futures::future::BoxFuture;
use sqlx::PgPool;
use zk_locks::Inspector;

use super::{Tolerance, facts::Guarded};

/// A reading of a number that needs servers the audit does not know.
pub type Reading<'a> =
    Box<dyn Fn() -> BoxFuture<'a, Result<u64, Box<dyn Error + Send + Sync>>> + Send + Sync + 'a>;

/// The watch count of the ensemble.
pub struct Watches<'a> {
    /// Before the run, with the services started and the inspector connected.
    pub baseline: u64,
    /// Reads it now.
    pub now: Reading<'a>,
}

impl fmt::Debug for Watches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("baseline", &self.baseline).finish_non_exhaustive()
    }
}

/// Where the locks are.
#[derive(Debug)]
pub struct Locks<'a> {
    /// A connection to ZooKeeper.
    pub inspector: &'a Inspector,
    /// Path under which the lock directories are.
    pub root: &'a str,
    /// How to compare watches, if at all.
    pub watches: Option<Watches<'a>>,
}

/// What to audit. A source that is not given is not judged, and the report says so.
#[derive(Debug)]
pub struct AuditInputs<'a> {
    /// The database of the service. The audit's own connection is left out of I5.
    pub database: &'a PgPool,
    /// The locks (I4).
    pub locks: Option<Locks<'a>>,
    /// The client's history. Orders whose key is not in it are judged by the database alone.
    pub history: Option<&'a Path>,
    /// What every change was guarded by.
    pub guarded: Guarded,
    /// Whether there is no traffic any more. Without it I4 and I5 are not judged.
    pub quiet: bool,
    /// How long to wait for quiet.
    pub quiet_within: Duration,
    /// How far clocks may differ.
    pub tolerance: Tolerance,
}

impl<'a> AuditInputs<'a> {
    /// A database that has become quiet, without locks and without a history.
    pub fn of_database(database: &'a PgPool) -> Self {
        Self {
            database,
            locks: None,
            history: None,
            guarded: Guarded::Unknown,
            quiet: true,
            quiet_within: Duration::from_secs(10),
            tolerance: Tolerance::default(),
        }
    }
}
