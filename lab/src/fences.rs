//! Fences that are ahead of ZooKeeper's tokens, and their reset by an operator.
//!
//! A token is a transaction id of the ensemble. When the ensemble's data is lost, ids start low again, and every row
//! whose fence is higher refuses every write. Promises to touch only those rows, and to leave a row of the ledger for
//! each, after which the audit lets tokens begin anew.
//!
//! A reset cannot oversell: the fenced writer reads and writes the stock in one transaction that holds the row. A
//! holder of the lost ensemble that still writes afterwards raises the fence again, which shows here.

use serde::Serialize;
use sqlx::PgPool;

/// A row that refuses every token of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Fence {
    /// Which SKU.
    pub sku: String,
    /// The highest token that ever claimed the row.
    pub fence: i64,
    /// Units on hand.
    pub on_hand: i64,
}

/// The rows whose fence is above `token`, by SKU.
///
/// # Errors
/// The database could not be read.
pub async fn ahead_of(token: i64, database: &PgPool) -> sqlx::Result<Vec<Fence>> {
    sqlx::query_as("SELECT sku, fence, on_hand FROM stock WHERE fence > $1 ORDER BY sku")
        .bind(token)
        .fetch_all(database)
        .await
}

/// Sets the fences above `token` to 0, all or none, and returns what they were.
///
/// # Errors
/// The database refused, or a row was locked for longer than five seconds: nothing was reset.
///
/// # Cancel safety
/// All or none were reset.
pub async fn reset(token: i64, database: &PgPool) -> sqlx::Result<Vec<Fence>> {
    let mut transaction = database.begin().await?;
    sqlx::query("SET LOCAL lock_timeout = '5s'").execute(&mut *transaction).await?;
    let ahead: Vec<Fence> = sqlx::query_as(
        "SELECT sku, fence, on_hand FROM stock WHERE fence > $1 ORDER BY sku FOR NO KEY UPDATE",
    )
    .bind(token)
    .fetch_all(&mut *transaction)
    .await?;
    // The rows are locked: what is read of them again is what was read above.
    let skus: Vec<&str> = ahead.iter().map(|row| row.sku.as_str()).collect();
    sqlx::query("UPDATE stock SET fence = 0, updated_at = clock_timestamp() WHERE sku = ANY($1)")
        .bind(&skus)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "INSERT INTO ledger (change_id, sku, kind, delta, on_hand_after, instance)
         SELECT gen_random_uuid(), sku, 'fence-reset', 0, on_hand, 'lockstock'
         FROM stock WHERE sku = ANY($1) ORDER BY sku",
    )
    .bind(&skus)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(ahead)
}
