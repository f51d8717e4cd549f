//! The fenced writer's claim: the statement that reads the stock is the one that asks the fence.
//!
//! Promises that a holder which was overtaken finds no row, and that a claimed row stays as it was read until the
//! transaction ends. A check at the last write would be too late: a stale holder's open transaction could commit between
//! the new holder's read and its write.

use tracing::Instrument;

use super::{Entry, StoreError, WriteError, connection::Transaction, spans::db_span};
use crate::domain::{Before, Command};

/// Claims every SKU of the command, in order.
pub(super) async fn claim(
    transaction: &mut Transaction,
    command: &Command,
    entries: &[Entry],
) -> Result<Vec<Before>, WriteError> {
    let mut before = Vec::with_capacity(entries.len());
    for entry in entries {
        let token = entry.token.expect("the fenced writer goes only with lockers that give tokens");
        let on_hand = claim_one(transaction, command.creates(), entry, token).await?;
        before.push(Before { sku: entry.sku.clone(), on_hand });
    }
    Ok(before)
}

async fn claim_one(
    transaction: &mut Transaction,
    creates: bool,
    entry: &Entry,
    token: i64,
) -> Result<Option<i64>, WriteError> {
    // One round more than a row can appear: SKUs are never deleted.
    for _ in 0..2 {
        let claimed = if creates {
            // Two creators meet at the primary key, and the one with the lower token finds no row.
            sqlx::query_scalar(
                "INSERT INTO stock AS s (sku, on_hand, fence) VALUES ($1, 0, $2)
                 ON CONFLICT (sku) DO UPDATE SET fence = $2 WHERE s.fence <= $2
                 RETURNING on_hand",
            )
        } else {
            sqlx::query_scalar("UPDATE stock SET fence = $2 WHERE sku = $1 AND fence <= $2 RETURNING on_hand")
        };
        let claimed: Option<i64> = claimed
            .bind(entry.sku.as_str())
            .bind(token)
            .fetch_optional(transaction.connection())
            .instrument(db_span!("UPDATE", "stock"))
            .await
            .map_err(|error| StoreError::from_sqlx("claim the stock", error))?;
        if claimed.is_some() {
            return Ok(claimed);
        }
        let fence: Option<i64> = sqlx::query_scalar("SELECT fence FROM stock WHERE sku = $1")
            .bind(entry.sku.as_str())
            .fetch_optional(transaction.connection())
            .instrument(db_span!("SELECT", "stock"))
            .await
            .map_err(|error| StoreError::from_sqlx("read the fence", error))?;
        match fence {
            None => return Ok(None),
            Some(fence) if fence > token => {
                return Err(WriteError::FencedOut { sku: entry.sku.clone(), token, fence });
            }
            // The row was made between the two statements.
            Some(_) => {}
        }
    }
    Ok(None)
}
