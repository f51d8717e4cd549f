//! PostgreSQL: all SQL of the service is in this folder.
//!
//! Promises that each function is bounded by the caller's deadline, that an error before a commit was sent means that
//! nothing was written, and that a connection whose state is in doubt never goes back to the pool. Does not retry.

mod connection;
mod error;
mod fenced;
mod gate;
mod idempotency;
mod incidents;
mod ledger;
mod migrate;
mod orders;
mod plain;
mod probe;
mod settle;
mod statement;
mod stock;
mod write;

use std::time::Duration;

use sqlx::{
    Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

pub use error::StoreError;
pub use gate::Gate;
pub use idempotency::Kept;
pub use incidents::{Incident, IncidentKind};
pub use ledger::Entry;
pub use migrate::MigrationError;
pub use orders::{Cancelled, Line, Order};
pub use stock::StockRow;
pub use write::{Decided, Reply, WriteError, Writing, Written};

use crate::config::Config;

/// How long a request waits for a connection before the database counts as unavailable.
const ACQUIRE_MAX: Duration = Duration::from_secs(2);

/// An idle connection older than this is tried before it is handed out; a younger one has just been used.
const UNTESTED_MAX: Duration = Duration::from_secs(1);

/// The database, as the rest of the service sees it.
#[derive(Clone)]
pub struct Store {
    pool: PgPool,
    options: PgConnectOptions,
    instance: String,
}

impl Store {
    /// A store whose pool connects when it is first used.
    pub fn new(config: &Config) -> Self {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let options = config.database.clone().application_name(&config.instance).options([
            ("lock_timeout", millis(config.db_lock_timeout)),
            ("idle_in_transaction_session_timeout", millis(config.db_idle_in_transaction)),
        ]);
        // The spans say what ran; sqlx's own log would repeat it.
        let options = sqlx::ConnectOptions::disable_statement_logging(options);
        let pool = PgPoolOptions::new()
            .max_connections(config.db_connections_max)
            .acquire_timeout(config.lock_wait.min(ACQUIRE_MAX))
            .acquire_slow_threshold(Duration::MAX)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > UNTESTED_MAX {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options.clone());
        Self { pool, options, instance: config.instance.clone() }
    }

    /// Connections that are open, and those of them that are idle.
    pub fn connections(&self) -> (u32, usize) {
        (self.pool.size(), self.pool.num_idle())
    }

    /// Closes the pool. Waits for connections in use, so bound it.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
