//! A connection on loan, and a transaction on it.
//!
//! Promises that only a connection known to be idle goes back to the pool. One that was dropped in the middle of anything
//! (a deadline, a panic, an error) is closed instead, and the server rolls back. So a cancelled `begin` cannot hand an
//! open transaction to the next borrower (sqlx issue 4385).

use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::{StoreError, spans::db_span};

/// A connection on loan; closed unless it is given back.
pub(super) struct Lease(Option<PoolConnection<Postgres>>);

impl Lease {
    pub(super) async fn take(pool: &PgPool, until: Instant) -> Result<Self, StoreError> {
        const OPERATION: &str = "give a connection";
        let acquired = timeout_at(until, pool.acquire()).await;
        let connection = acquired
            .map_err(|_| StoreError::timed_out(OPERATION))?
            .map_err(|error| StoreError::from_sqlx(OPERATION, error))?;
        Ok(Self(Some(connection)))
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("the connection is there until the lease ends")
    }

    /// To be called only when the last statement was answered and no transaction is open.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

/// Runs one read on a connection of its own, bounded.
pub(super) async fn read<T>(
    pool: &PgPool,
    until: Instant,
    operation: &'static str,
    query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
) -> Result<T, StoreError> {
    let mut lease = Lease::take(pool, until).await?;
    let value = timeout_at(until, query(lease.connection()))
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
        // The fence relies on a waiting UPDATE seeing the row as its predecessor left it, whatever the server's default.
        sqlx::raw_sql("BEGIN ISOLATION LEVEL READ COMMITTED")
            .execute(lease.connection())
            .instrument(db_span!("BEGIN"))
            .await
            .map_err(|error| StoreError::from_sqlx("begin", error))?;
        Ok(Self(lease))
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        self.0.connection()
    }

    /// Rolls back and keeps the connection. An error changes nothing: the server rolls back when the connection closes.
    pub(super) async fn roll_back(mut self) {
        let rolled_back =
            sqlx::raw_sql("ROLLBACK").execute(self.0.connection()).instrument(db_span!("ROLLBACK")).await;
        match rolled_back {
            Ok(_) => self.0.give_back(),
            Err(error) => tracing::debug!(%error, "the rollback is left to the server"),
        }
    }

    /// Commits. An error says nothing about the outcome.
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("COMMIT").execute(self.0.connection()).instrument(db_span!("COMMIT")).await?;
        self.0.give_back();
        Ok(())
    }
}
