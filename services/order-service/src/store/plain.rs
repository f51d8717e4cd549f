//! The plain writer's read: what people write. It holds nothing: whatever happens between this read and the write is
//! overwritten. That is its purpose here; the audit must find it.

use tokio::time::Instant;

use super::{
    Store, StoreError, connection,
    statement::{Statement, statement},
};
use crate::domain::{Before, Sku};

const LOOK: Statement = statement!("SELECT", "stock", "SELECT sku, on_hand FROM stock WHERE sku = ANY($1)");

impl Store {
    /// Reads the stock of some SKUs, outside any transaction.
    pub async fn look(&self, skus: &[Sku], until: Instant) -> Result<Vec<Before>, StoreError> {
        let names: Vec<&str> = skus.iter().map(Sku::as_str).collect();
        let rows: Vec<(String, i64)> = connection::read(&self.pool, until, "read the stock", async |lease| {
            lease
                .run(&LOOK, async |connection| {
                    sqlx::query_as(LOOK.text).bind(&names).fetch_all(connection).await
                })
                .await
        })
        .await?;
        let on_hand = |sku: &Sku| rows.iter().find(|(name, _)| name == sku.as_str()).map(|(_, units)| *units);
        Ok(skus.iter().map(|sku| Before { sku: sku.clone(), on_hand: on_hand(sku) }).collect())
    }
}
