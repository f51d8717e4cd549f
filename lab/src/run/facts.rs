//! What happened in a run, read from the database and from the clients' history once it is over. No judgement.

use std::path::Path;
use std::time::Duration;

use loadtest::history::{self, Claim, Op, Outcome, Record};
use sqlx::PgPool;

use super::replies;
use crate::faults::Strike;
use crate::report::model::{FencedWrite, LostLock, Orders, Replies, Series};

/// The facts could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// The clients' history.
    #[error("reading the clients' history")]
    History(#[from] history::ReadError),
    /// The database.
    #[error("reading the {what} of the run")]
    Database {
        /// Which table.
        what: &'static str,
        /// Why.
        source: sqlx::Error,
    },
}

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// When the first order was sent, milliseconds since the Unix epoch. All other times count from here.
    pub begun_ms: f64,
    /// From the first order sent to the last reply, in seconds.
    pub duration_s: f64,
    /// Orders by outcome.
    pub orders: Orders,
    /// How requests were answered.
    pub replies: Replies,
    /// Time from sending to a decided reply, of each attempt that decided.
    pub order_ms: Vec<f64>,
    /// Stock, accepted orders and waits over time.
    pub series: Series,
    /// Committed orders: (seconds, token).
    pub commits: Vec<(f64, Option<i64>)>,
    /// Locks that were lost while held.
    pub lost_locks: Vec<LostLock>,
    /// Writes that the fence refused.
    pub fenced_writes: Vec<FencedWrite>,
}

impl Facts {
    /// Reads everything about one SKU since a moment; `deadline` is that of a request. A replica that stood still owes no
    /// reply for that time.
    pub async fn read(
        database: &PgPool,
        (sku, since_ms): (&str, f64),
        history: &Path,
        strikes: &[Strike],
        deadline: Duration,
    ) -> Result<Self, FactsError> {
        let records = history::read(history)?;
        let mut facts = Self::from_history(&records);
        facts.replies = replies::of(&records, strikes, deadline);
        facts.add_ledger(ledger(database, sku, since_ms).await?);
        facts.add_incidents(incidents(database, sku, since_ms).await?);
        Ok(facts)
    }

    fn from_history(records: &[Record]) -> Self {
        let orders: Vec<&Record> = records.iter().filter(|record| record.op == Op::Order).collect();
        let begun_ms = orders.iter().map(|record| record.sent_at).fold(f64::INFINITY, f64::min);
        let ended_ms = orders.iter().map(|record| record.received_at).fold(begun_ms, f64::max);
        if !begun_ms.is_finite() {
            return Self::default();
        }
        let mut facts = Self { begun_ms, duration_s: (ended_ms - begun_ms) / 1000.0, ..Self::default() };
        for key in history::by_key(records).values() {
            match key.claim() {
                Claim::Accepted => facts.orders.accepted += 1,
                Claim::OutOfStock => facts.orders.out_of_stock += 1,
                Claim::NotPlaced => facts.orders.failed += 1,
                Claim::Unknown => facts.orders.unknown += 1,
            }
        }
        for record in orders {
            let outcome = record.outcome();
            if matches!(outcome, Outcome::Accepted | Outcome::OutOfStock) {
                facts.order_ms.push(record.received_at - record.sent_at);
            }
            if outcome == Outcome::Accepted {
                facts.series.lock_waits_ms.extend(record.wait_ms.filter(|_| record.token.is_some()));
            }
        }
        facts
    }

    fn add_ledger(&mut self, rows: Vec<LedgerRow>) {
        for row in rows {
            let at = self.seconds(row.at_ms);
            self.series.stock.push((at, row.on_hand_after));
            if row.kind == "order" {
                self.series.accepted.push(at);
                self.commits.push((at, row.token));
            }
        }
    }

    fn add_incidents(&mut self, rows: Vec<IncidentRow>) {
        for row in rows {
            let at_s = self.seconds(row.at_ms);
            if row.kind == "fenced-out" {
                let (instance, token) = (row.instance.clone(), row.token);
                self.fenced_writes.push(FencedWrite { at_s, instance, token, fence: row.fence });
            }
            let known = row.token.is_some() && self.lost_locks.iter().any(|lost| lost.token == row.token);
            if !known {
                // A holder that did not notice in time lost its lock all the same; the fence told it.
                let (instance, token) = (row.instance, row.token);
                self.lost_locks.push(LostLock { at_s, instance, token, reason: row.reason });
            }
        }
    }

    /// Seconds after the start of the load.
    pub fn seconds(&self, at_ms: f64) -> f64 {
        (at_ms - self.begun_ms) / 1000.0
    }

    /// Accepted orders per second, from the first to the last.
    pub fn orders_per_s(&self) -> f64 {
        let (Some(first), Some(last)) = (self.series.accepted.first(), self.series.accepted.last()) else {
            return 0.0;
        };
        if last > first { (self.series.accepted.len() - 1) as f64 / (last - first) } else { 0.0 }
    }

    /// From a moment to the next order committed by a later holder than `token`, in milliseconds.
    pub fn recovery_ms(&self, at_s: f64, token: i64) -> Option<f64> {
        let later = |commit: &&(f64, Option<i64>)| commit.0 >= at_s && commit.1.is_some_and(|t| t > token);
        self.commits.iter().find(later).map(|commit| (commit.0 - at_s) * 1000.0)
    }
}

#[derive(sqlx::FromRow)]
struct LedgerRow {
    at_ms: f64,
    kind: String,
    on_hand_after: i64,
    token: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct IncidentRow {
    at_ms: f64,
    kind: String,
    token: Option<i64>,
    fence: Option<i64>,
    reason: String,
    instance: String,
}

async fn ledger(database: &PgPool, sku: &str, since_ms: f64) -> Result<Vec<LedgerRow>, FactsError> {
    sqlx::query_as(
        "select (extract(epoch from at) * 1000)::float8 as at_ms, kind, on_hand_after, token \
         from ledger where sku = $1 and at >= to_timestamp($2) order by at, id",
    )
    .bind(sku)
    .bind(since_ms / 1000.0)
    .fetch_all(database)
    .await
    .map_err(|source| FactsError::Database { what: "ledger", source })
}

async fn incidents(database: &PgPool, sku: &str, since_ms: f64) -> Result<Vec<IncidentRow>, FactsError> {
    sqlx::query_as(
        "select (extract(epoch from at) * 1000)::float8 as at_ms, kind, token, fence, reason, instance \
         from incidents where sku = $1 and at >= to_timestamp($2) order by at, id",
    )
    .bind(sku)
    .bind(since_ms / 1000.0)
    .fetch_all(database)
    .await
    .map_err(|source| FactsError::Database { what: "incidents", source })
}

#[cfg(test)]
mod tests {
    use super::{Facts, IncidentRow, LedgerRow};

    fn sold(at_ms: f64, token: i64) -> LedgerRow {
        LedgerRow { at_ms, kind: "order".into(), on_hand_after: 1, token: Some(token) }
    }

    fn incident(kind: &str, token: i64, reason: &str) -> IncidentRow {
        IncidentRow {
            at_ms: 2000.0,
            kind: kind.into(),
            token: Some(token),
            fence: Some(9),
            reason: reason.into(),
            instance: "order-1".into(),
        }
    }

    #[test]
    fn recovery_is_the_next_order_of_a_later_holder() {
        let mut facts = Facts { begun_ms: 1000.0, ..Facts::default() };
        facts.add_ledger(vec![sold(1100.0, 5), sold(1300.0, 6), sold(3000.0, 8)]);
        assert_eq!(facts.recovery_ms(0.2, 6), Some(1800.0), "the commit of the struck token does not count");
        assert_eq!(facts.recovery_ms(2.5, 6), None);
        assert!((facts.orders_per_s() - 2.0 / 1.9).abs() < 1e-9);
    }

    #[test]
    fn a_lock_is_lost_once_however_many_rows_tell_it() {
        let mut facts = Facts::default();
        facts.add_incidents(vec![
            incident("lock-lost", 5, "session-expired"),
            incident("fenced-out", 5, "fence 9"),
            incident("fenced-out", 7, "fence 9"),
        ]);
        assert_eq!(facts.lost_locks.len(), 2);
        assert_eq!(facts.fenced_writes.len(), 2);
        assert_eq!(facts.lost_locks[0].reason, "session-expired");
    }
}
