//! Reads the tables in one snapshot, so that orders placed meanwhile are seen whole or not at all.

use std::collections::BTreeMap;

use loadtest::history::Line;
use sqlx::{PgPool, PgTransaction};

use super::CollectError;
use crate::audit::facts::{Facts, KeyRow, Kind, LedgerRow, OrderRow, StockRow};

#[derive(sqlx::FromRow)]
struct RawLedgerRow {
    id: i64,
    sku: String,
    kind: String,
    order_id: Option<String>,
    delta: i64,
    on_hand_after: i64,
    token: Option<i64>,
    lock_node: Option<String>,
    at: f64,
}

fn cannot(what: &'static str) -> impl Fn(sqlx::Error) -> CollectError {
    move |source| CollectError::Database { what, source }
}

/// Fills in stock, ledger, orders and keys.
pub(super) async fn read(database: &PgPool, facts: &mut Facts) -> Result<(), CollectError> {
    let begin = database.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    let mut snapshot = begin.await.map_err(cannot("snapshot"))?;
    facts.stock = stock(&mut snapshot).await?;
    facts.ledger = ledger(&mut snapshot).await?;
    facts.orders = orders(&mut snapshot).await?;
    facts.keys = keys(&mut snapshot).await?;
    snapshot.rollback().await.map_err(cannot("snapshot"))
}

async fn stock(snapshot: &mut PgTransaction<'_>) -> Result<Vec<StockRow>, CollectError> {
    let rows: Vec<(String, i64, i64)> = sqlx::query_as("SELECT sku, on_hand, fence FROM stock ORDER BY sku")
        .fetch_all(&mut **snapshot)
        .await
        .map_err(cannot("stock"))?;
    Ok(rows.into_iter().map(|(sku, on_hand, fence)| StockRow { sku, on_hand, fence }).collect())
}

async fn ledger(snapshot: &mut PgTransaction<'_>) -> Result<Vec<LedgerRow>, CollectError> {
    let rows: Vec<RawLedgerRow> = sqlx::query_as(
        "SELECT id, sku, kind, order_id::text AS order_id, delta, on_hand_after, token, lock_node,
                (extract(epoch FROM at) * 1000)::float8 AS at
         FROM ledger ORDER BY id",
    )
    .fetch_all(&mut **snapshot)
    .await
    .map_err(cannot("ledger"))?;
    rows.into_iter().map(ledger_row).collect()
}

fn ledger_row(row: RawLedgerRow) -> Result<LedgerRow, CollectError> {
    let RawLedgerRow { id, sku, kind, order_id, delta, on_hand_after, token, lock_node, at } = row;
    let kind = match kind.as_str() {
        "order" => Kind::Order,
        "cancel" => Kind::Cancel,
        "restock" => Kind::Restock,
        "set" => Kind::Set,
        "fence-reset" => Kind::FenceReset,
        _ => return Err(CollectError::Kind { id, kind }),
    };
    Ok(LedgerRow { id, sku, kind, order_id, delta, on_hand_after, token, lock_node, at })
}

async fn orders(snapshot: &mut PgTransaction<'_>) -> Result<Vec<OrderRow>, CollectError> {
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("SELECT id::text, status, coalesce(trace_id, '') FROM orders ORDER BY id")
            .fetch_all(&mut **snapshot)
            .await
            .map_err(cannot("orders"))?;
    let mut lines: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    let line_rows: Vec<(String, String, i64)> =
        sqlx::query_as("SELECT order_id::text, sku, quantity FROM order_lines ORDER BY order_id, sku")
            .fetch_all(&mut **snapshot)
            .await
            .map_err(cannot("order lines"))?;
    for (order_id, sku, quantity) in line_rows {
        lines.entry(order_id).or_default().push(Line { sku, quantity });
    }
    let order = |(id, status, trace_id): (String, String, String)| OrderRow {
        cancelled: status == "cancelled",
        lines: lines.remove(&id).unwrap_or_default(),
        id,
        trace_id,
    };
    Ok(rows.into_iter().map(order).collect())
}

async fn keys(snapshot: &mut PgTransaction<'_>) -> Result<Vec<KeyRow>, CollectError> {
    let rows: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT key, order_id::text FROM idempotency ORDER BY key")
            .fetch_all(&mut **snapshot)
            .await
            .map_err(cannot("kept replies"))?;
    Ok(rows.into_iter().map(|(key, order_id)| KeyRow { key, order_id }).collect())
}
