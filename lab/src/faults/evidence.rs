//! What the database says about a critical section, by its fencing token.

use sqlx::PgPool;

use super::SceneError;

/// Reads the database for evidence. Never writes.
#[derive(Debug, Clone)]
pub struct Evidence {
    database: PgPool,
    sku: String,
}

/// What a replica recorded about a critical section that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) token: i64,
    pub(super) kind: String,
    pub(super) reason: String,
}

impl Evidence {
    /// Evidence about one SKU.
    pub fn new(database: PgPool, sku: &str) -> Self {
        Self { database, sku: sku.to_owned() }
    }

    /// Whether a change of stock was committed under a token.
    pub(super) async fn wrote(&self, token: i64) -> Result<bool, SceneError> {
        sqlx::query_scalar("select exists (select 1 from ledger where sku = $1 and token = $2)")
            .bind(&self.sku)
            .bind(token)
            .fetch_one(&self.database)
            .await
            .map_err(asking("whether a token wrote"))
    }

    /// Whether a later holder sold something.
    pub(super) async fn later_sold(&self, token: i64) -> Result<bool, SceneError> {
        sqlx::query_scalar(
            "select exists (select 1 from ledger where sku = $1 and token > $2 and kind = 'order')",
        )
        .bind(&self.sku)
        .bind(token)
        .fetch_one(&self.database)
        .await
        .map_err(asking("whether a later holder sold"))
    }

    /// Whether an instance has a transaction open on any of its connections.
    pub(super) async fn in_transaction(&self, instance: &str) -> Result<bool, SceneError> {
        sqlx::query_scalar(
            "select exists (select 1 from pg_stat_activity where datname = current_database() \
             and application_name = $1 and xact_start is not null)",
        )
        .bind(instance)
        .fetch_one(&self.database)
        .await
        .map_err(asking("for open transactions"))
    }

    /// The first failed critical section of an instance, from a token on, that wrote nothing.
    pub(super) async fn incident(
        &self,
        instance: &str,
        from_token: i64,
    ) -> Result<Option<Incident>, SceneError> {
        let row: Option<(i64, String, String)> = sqlx::query_as(
            "select i.token, i.kind, i.reason from incidents i where i.sku = $1 and i.instance = $2 \
             and i.token >= $3 and not exists \
             (select 1 from ledger l where l.sku = i.sku and l.token = i.token) order by i.token limit 1",
        )
        .bind(&self.sku)
        .bind(instance)
        .bind(from_token)
        .fetch_optional(&self.database)
        .await
        .map_err(asking("for incidents"))?;
        Ok(row.map(|(token, kind, reason)| Incident { token, kind, reason }))
    }
}

fn asking(question: &'static str) -> impl FnOnce(sqlx::Error) -> SceneError {
    move |source| SceneError::Database { question, source }
}
