//! The fenced writer's claim: the statement that reads the stock is the one that asks the fence.
//!
//! Promises that a holder which was overtaken finds no row, and that a claimed row stays as it was read until the
//! transaction ends. A check at the last write would be too late: a stale holder's open transaction could commit between
//! the new holder's read and its write.

use super::{
    Entry, StoreError, WriteError,
    connection::Transaction,
    statement::{Statement, statement},
};
use crate::domain::{Before, Command};

const CLAIM: Statement = statement!(
    "UPDATE",
    "stock",
    "UPDATE stock SET fence = $2 WHERE sku = $1 AND fence <= $2 RETURNING on_hand"
);

/// Two creators meet at the primary key, and the one with the lower token finds no row.
const CLAIM_OR_CREATE: Statement = statement!(
    "UPDATE",
    "stock",
    "INSERT INTO stock AS s (sku, on_hand, fence) VALUES ($1, 0, $2)
     ON CONFLICT (sku) DO UPDATE SET fence = $2 WHERE s.fence <= $2
     RETURNING on_hand"
);

/// Names the token that was there.
const FENCE: Statement = statement!("SELECT", "stock", "SELECT fence FROM stock WHERE sku = $1");

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
    let claim = if creates { CLAIM_OR_CREATE } else { CLAIM };
    let sku = entry.sku.as_str();
    // One round more than a row can appear: SKUs are never deleted.
    for _ in 0..2 {
        let claimed: Option<i64> = transaction
            .run(&claim, async |connection| {
                sqlx::query_scalar(claim.text).bind(sku).bind(token).fetch_optional(connection).await
            })
            .await
            .map_err(|error| StoreError::from_sqlx("claim the stock", error))?;
        if claimed.is_some() {
            return Ok(claimed);
        }
        let fence: Option<i64> = transaction
            .run(&FENCE, async |connection| {
                sqlx::query_scalar(FENCE.text).bind(sku).fetch_optional(connection).await
            })
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
