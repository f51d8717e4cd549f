//! Does the database answer? Asked outside the pool, so that a busy pool does not look like a dead database.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, PgConnection};

use super::{Store, StoreError};

impl Store {
    /// Whether the database answers, on a connection that is kept between calls. One that broke is replaced before
    /// the database is said to be down.
    pub async fn probe(&self, kept: &mut Option<PgConnection>, within: Duration) -> Result<(), StoreError> {
        const OPERATION: &str = "answer";
        let old = kept.take();
        let answered = tokio::time::timeout(within, async {
            if let Some(mut old) = old
                && old.ping().await.is_ok()
            {
                return Ok(old);
            }
            let mut fresh = self.options.connect().await?;
            fresh.ping().await?;
            Ok(fresh)
        })
        .await;
        let connection = answered
            .map_err(|_| StoreError::timed_out(OPERATION))?
            .map_err(|error| StoreError::from_sqlx(OPERATION, error))?;
        *kept = Some(connection);
        Ok(())
    }
}
