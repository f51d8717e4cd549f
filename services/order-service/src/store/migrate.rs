//! Brings the schema up to date, safely when several replicas start at once.

use std::time::Duration;

use sqlx::{migrate::MigrateError, postgres::PgPoolOptions};

use super::{Store, StoreError, error::backoff};

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations");

/// Longest single attempt.
const ATTEMPT_MAX: Duration = Duration::from_mins(1);

/// The schema cannot be brought up to date by waiting.
#[derive(Debug, thiserror::Error)]
#[error("the database's schema does not go with this program")]
pub struct MigrationError(#[from] MigrateError);

impl Store {
    /// Applies what is missing; while the database cannot be reached, tries again for ever.
    ///
    /// # Errors
    /// [`MigrationError`] if the schema was made by other migrations than those of this program.
    pub async fn migrate(&self) -> Result<(), MigrationError> {
        for attempt in 0.. {
            let reason = match tokio::time::timeout(ATTEMPT_MAX, self.migrate_once()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))) => {
                    match StoreError::from_sqlx("migrate", error) {
                        StoreError::Bug { source, .. } => return Err(MigrateError::Execute(source).into()),
                        passing @ StoreError::Unavailable { .. } => passing.to_string(),
                    }
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => "no reply".to_owned(),
            };
            if attempt == 0 {
                tracing::warn!(reason, "the schema could not be checked; trying again until it can");
            }
            tokio::time::sleep(backoff(attempt)).await;
        }
        Ok(())
    }

    async fn migrate_once(&self) -> Result<(), MigrateError> {
        // Waiting for another replica's migration is no lock to give up on after two seconds.
        let options = self.options.clone().options([("lock_timeout", "0")]);
        // A pool of its own: whatever happens, its one connection closes, and the advisory lock goes with it.
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
        let migrated = MIGRATIONS.run(&pool).await;
        pool.close().await;
        migrated?;
        tracing::info!("the schema is up to date");
        Ok(())
    }
}
