//! A connection on loan, and a transaction on it.
//!
//! Promises that only a connection known to be idle goes back to the pool. One that was dropped in the middle of anything
//! (a deadline, a panic, an error) is closed instead, and the server rolls back. So a cancelled `begin` cannot hand an
//! open transaction to the next borrower (sqlx issue 4385).

use std::sync::Arc;

use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection, postgres::PgConnectOptions};
use tokio::time::{Instant, timeout_at};

use super::{
    StoreError,
    statement::{Statement, statement},
};

// The fence relies on a waiting UPDATE seeing the row as its predecessor left it, whatever the server's default.
const BEGIN: Statement = statement!("BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED");
const COMMIT: Statement = statement!("COMMIT", "COMMIT");
const ROLLBACK: Statement = statement!("ROLLBACK", "ROLLBACK");

/// A connection on loan; closed unless it is given back.
pub(super) struct Lease {
    connection: Option<PoolConnection<Postgres>>,
    options: Arc<PgConnectOptions>,
}

impl Lease {
    pub(super) async fn take(pool: &PgPool, until: Instant) -> Result<Self, StoreError> {
        const OPERATION: &str = "give a connection";
        let acquired = timeout_at(until, pool.acquire()).await;
        let connection = acquired
            .map_err(|_| StoreError::timed_out(OPERATION))?
            .map_err(|error| StoreError::from_sqlx(OPERATION, error))?;
        Ok(Self { connection: Some(connection), options: pool.connect_options() })
    }

    /// Runs one statement.
    pub(super) async fn run<T>(
        &mut self,
        statement: &Statement,
        query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let connection = self.connection.as_mut().expect("the connection is there until the lease ends");
        statement.run(database(&self.options), query(connection)).await
    }

    /// To be called only when the last statement was answered and no transaction is open.
    pub(super) fn give_back(mut self) {
        drop(self.connection.take());
    }
}

/// The database's name, as PostgreSQL would choose it.
pub(super) fn database(options: &PgConnectOptions) -> &str {
    options.get_database().unwrap_or_else(|| options.get_username())
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

/// Reads on a connection of its own, bounded.
pub(super) async fn read<T>(
    pool: &PgPool,
    until: Instant,
    operation: &'static str,
    query: impl AsyncFnOnce(&mut Lease) -> Result<T, sqlx::Error>,
) -> Result<T, StoreError> {
    let mut lease = Lease::take(pool, until).await?;
    let value = timeout_at(until, query(&mut lease))
        .await
        .map_err(|_| StoreError::timed_out(operation))?
        .map_err(|error| StoreError::from_sqlx(operation, error))?;
    lease.give_back();
    Ok(value)
}

/// An open transaction; rolled back, by closing its connection, if it is dropped.
pub(super) struct Transaction(Lease);

impl Transaction {
    pub(super) async fn begin(pool: &PgPool, until: Instant) -> Result<Self, StoreError> {
        let mut lease = Lease::take(pool, until).await?;
        lease
            .run(&BEGIN, async |connection| sqlx::raw_sql(BEGIN.text).execute(connection).await)
            .await
            .map_err(|error| StoreError::from_sqlx("begin", error))?;
        Ok(Self(lease))
    }

    /// Runs one statement.
    pub(super) async fn run<T>(
        &mut self,
        statement: &Statement,
        query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        self.0.run(statement, query).await
    }

    /// Rolls back and keeps the connection. An error changes nothing: the server rolls back when the connection closes.
    pub(super) async fn roll_back(mut self) {
        match self
            .run(&ROLLBACK, async |connection| sqlx::raw_sql(ROLLBACK.text).execute(connection).await)
            .await
        {
            Ok(_) => self.0.give_back(),
            Err(error) => tracing::debug!(%error, "the rollback is left to the server"),
        }
    }

    /// Commits. An error says nothing about the outcome.
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.run(&COMMIT, async |connection| sqlx::raw_sql(COMMIT.text).execute(connection).await).await?;
        self.0.give_back();
        Ok(())
    }
}
