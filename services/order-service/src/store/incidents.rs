//! What the fence and the guards kept out. Best effort: written outside the refused transaction, and not retried.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Store, connection,
    statement::{Statement, statement},
};
use crate::domain::Sku;

const RECORD: Statement = statement!(
    "INSERT",
    "incidents",
    "INSERT INTO incidents (kind, sku, order_id, token, fence, reason, instance)
     VALUES ($1, $2, $3, $4, $5, $6, $7)"
);

/// How long the record of an incident may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentKind {
    /// The row had seen a later token.
    FencedOut,
    /// The lock was lost during the work.
    LockLost,
}

/// A change that was kept out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// What happened.
    pub kind: IncidentKind,
    /// To which SKU.
    pub sku: Sku,
    /// The order that was not placed.
    pub order_id: Option<Uuid>,
    /// The token that was refused.
    pub token: Option<i64>,
    /// The token the row had seen.
    pub fence: Option<i64>,
    /// Why.
    pub reason: &'static str,
}

impl Store {
    /// Records an incident; a failure is only logged.
    pub async fn record(&self, incident: &Incident) {
        let kind = match incident.kind {
            IncidentKind::FencedOut => "fenced-out",
            IncidentKind::LockLost => "lock-lost",
        };
        let written =
            connection::read(&self.pool, Instant::now() + PATIENCE, "record an incident", async |lease| {
                let query = sqlx::query(RECORD.text)
                    .bind(kind)
                    .bind(incident.sku.as_str())
                    .bind(incident.order_id)
                    .bind(incident.token)
                    .bind(incident.fence)
                    .bind(incident.reason)
                    .bind(&self.instance);
                lease.run(&RECORD, async |connection| query.execute(connection).await).await
            })
            .await;
        if let Err(error) = written {
            tracing::warn!(%error, kind, sku = %incident.sku, "an incident was not recorded");
        }
    }
}
