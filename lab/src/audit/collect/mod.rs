//! Reads the sources. All of the audit's I/O, and no judgement.

mod database;
mod quiet;

use std::error::Error;

use loadtest::history::{self, ReadError};
use zk_locks::OperationError;

use super::{AuditInputs, facts::Facts};

/// A source could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// PostgreSQL.
    #[error("cannot read the {what} from the database")]
    Database {
        /// Which rows.
        what: &'static str,
        /// Why.
        source: sqlx::Error,
    },
    /// A kind of ledger row that this audit does not know.
    #[error("ledger row {id} has the unknown kind '{kind}'")]
    Kind {
        /// Which row.
        id: i64,
        /// Its kind.
        kind: String,
    },
    /// ZooKeeper.
    #[error("cannot read the locks")]
    Locks(#[from] OperationError),
    /// The watch count.
    #[error("cannot read the watch count")]
    Watches(#[source] Box<dyn Error + Send + Sync>),
    /// The client's history.
    #[error(transparent)]
    History(#[from] ReadError),
}

/// Waits for quiet, then reads everything.
pub(super) async fn collect(inputs: &AuditInputs<'_>) -> Result<Facts, CollectError> {
    let mut facts = Facts { guarded: inputs.guarded, ..Facts::default() };
    if inputs.quiet {
        (facts.sessions, facts.locks) = quiet::wait(inputs).await?;
    }
    // After the wait: what the last requests left under way is committed by now.
    database::read(inputs.database, &mut facts).await?;
    if let Some(path) = inputs.history {
        facts.history = Some(history::read(path)?);
    }
    Ok(facts)
}
