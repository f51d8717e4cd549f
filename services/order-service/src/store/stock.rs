//! The stock as anyone may read it, and the write that both writers share.

use tokio::time::Instant;

use super::{
    Store, StoreError, connection,
    connection::Transaction,
    statement::{Statement, statement},
};
use crate::domain::{Change, Sku};

const ONE: Statement = statement!("SELECT", "stock", "SELECT sku, on_hand, fence FROM stock WHERE sku = $1");

const PAGE: Statement = statement!(
    "SELECT",
    "stock",
    "SELECT sku, on_hand, fence FROM stock WHERE sku > $1 ORDER BY sku LIMIT $2"
);

const WRITE: Statement = statement!(
    "UPDATE",
    "stock",
    "UPDATE stock SET on_hand = $2, updated_at = clock_timestamp() WHERE sku = $1"
);

const WRITE_OR_CREATE: Statement = statement!(
    "UPDATE",
    "stock",
    "INSERT INTO stock (sku, on_hand) VALUES ($1, $2)
     ON CONFLICT (sku) DO UPDATE SET on_hand = excluded.on_hand, updated_at = clock_timestamp()"
);

/// One SKU's stock.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow, serde::Serialize)]
pub struct StockRow {
    /// Which SKU.
    pub sku: String,
    /// Units left.
    pub on_hand: i64,
    /// Highest token that ever claimed the row.
    pub fence: i64,
}

impl Store {
    /// One SKU.
    pub async fn stock(&self, sku: &Sku, until: Instant) -> Result<Option<StockRow>, StoreError> {
        connection::read(&self.pool, until, "read the stock", async |lease| {
            lease
                .run(&ONE, async |connection| {
                    sqlx::query_as(ONE.text).bind(sku.as_str()).fetch_optional(connection).await
                })
                .await
        })
        .await
    }

    /// SKUs in order, at most `limit`, beginning after one.
    pub async fn stock_after(
        &self,
        after: Option<&Sku>,
        limit: i64,
        until: Instant,
    ) -> Result<Vec<StockRow>, StoreError> {
        connection::read(&self.pool, until, "list the stock", async |lease| {
            let after = after.map_or("", Sku::as_str);
            lease
                .run(&PAGE, async |connection| {
                    sqlx::query_as(PAGE.text).bind(after).bind(limit).fetch_all(connection).await
                })
                .await
        })
        .await
    }
}

/// Writes the computed numbers, in SKU order; `creates`: also where there is no row yet.
pub(super) async fn write(
    transaction: &mut Transaction,
    changes: &[Change],
    creates: bool,
) -> Result<(), StoreError> {
    let write = if creates { WRITE_OR_CREATE } else { WRITE };
    for change in changes {
        transaction
            .run(&write, async |connection| {
                sqlx::query(write.text).bind(change.sku.as_str()).bind(change.after).execute(connection).await
            })
            .await
            .map_err(|error| StoreError::from_sqlx("write the stock", error))?;
    }
    Ok(())
}
