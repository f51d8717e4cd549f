//! The ledger: one row per changed SKU, in the transaction that changes it.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    StoreError,
    connection::Transaction,
    statement::{Statement, statement},
};
use crate::domain::{Change, Command, Sku};

const INSERT: Statement = statement!(
    "INSERT",
    "ledger",
    "INSERT INTO ledger
         (change_id, kind, order_id, instance, sku, delta, on_hand_after, token, lock_node, acquired_at)
     SELECT $1, $2, $3, $4, l.*
     FROM unnest($5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::timestamptz[]) AS l
     RETURNING id, pg_current_xact_id()::text"
);

/// Under which lock a SKU is changed; all `None` in mode `none`.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Which SKU.
    pub sku: Sku,
    /// The lock's fencing token.
    pub token: Option<i64>,
    /// The lock's node.
    pub node: Option<String>,
    /// When the lock was acquired, by this replica's clock.
    pub acquired_at: Option<OffsetDateTime>,
}

/// What identifies a transaction after its connection is gone.
#[derive(Debug, Clone)]
pub(super) struct Receipt {
    /// `pg_current_xact_id()`, as text.
    pub(super) transaction: String,
    /// One of the ledger rows it wrote,
    pub(super) row: i64,
    /// and the name only that transaction gave to it.
    pub(super) change: Uuid,
}

pub(super) async fn insert(
    transaction: &mut Transaction,
    command: &Command,
    changes: &[Change],
    entries: &[Entry],
    instance: &str,
) -> Result<Receipt, StoreError> {
    let change_id = Uuid::now_v7();
    let skus: Vec<&str> = changes.iter().map(|change| change.sku.as_str()).collect();
    let deltas: Vec<i64> = changes.iter().map(|change| change.delta).collect();
    let after: Vec<i64> = changes.iter().map(|change| change.after).collect();
    let tokens: Vec<Option<i64>> = entries.iter().map(|entry| entry.token).collect();
    let nodes: Vec<Option<&str>> = entries.iter().map(|entry| entry.node.as_deref()).collect();
    let acquired: Vec<Option<OffsetDateTime>> = entries.iter().map(|entry| entry.acquired_at).collect();
    let query = sqlx::query_as(INSERT.text)
        .bind(change_id)
        .bind(command.kind().as_str())
        .bind(command.order_id())
        .bind(instance)
        .bind(skus)
        .bind(deltas)
        .bind(after)
        .bind(tokens)
        .bind(nodes)
        .bind(acquired);
    let rows: Vec<(i64, String)> = transaction
        .run(&INSERT, async |connection| query.fetch_all(connection).await)
        .await
        .map_err(|error| StoreError::from_sqlx("write the ledger", error))?;
    let (row, transaction) = rows.into_iter().next().expect("a change has at least one SKU");
    Ok(Receipt { transaction, row, change: change_id })
}
