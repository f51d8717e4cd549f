//! Which ledger rows were surely committed when: a reply that acknowledges a change proves its commit.

use std::collections::HashMap;

use loadtest::history::{Op, Outcome, Record};

use crate::audit::facts::{Facts, Kind, LedgerRow};

/// By ledger row, when the client had the first reply that proves its commit.
#[derive(Debug)]
pub(super) struct Commits(HashMap<i64, f64>);

impl Commits {
    /// From acknowledged orders and cancels, and from the acknowledged settings and restocks that were
    /// found in the ledger.
    pub(super) fn of(facts: &Facts, history: &[Record], changes: Vec<(i64, f64)>) -> Self {
        let mut replies: HashMap<(Op, &str), f64> = HashMap::new();
        for record in history.iter().filter(|record| record.outcome() == Outcome::Accepted) {
            if let Some(id) = &record.order_id {
                let first = replies.entry((record.op, id.as_str())).or_insert(f64::INFINITY);
                *first = first.min(record.received_at);
            }
        }
        let proved = |row: &LedgerRow| {
            let op = match row.kind {
                Kind::Order => Op::Order,
                Kind::Cancel => Op::Cancel,
                Kind::Restock | Kind::Set | Kind::FenceReset => return None,
            };
            let at = replies.get(&(op, row.order_id.as_deref()?))?;
            Some((row.id, *at))
        };
        Self(facts.ledger.iter().filter_map(proved).chain(changes).collect())
    }

    /// Whether a row was surely committed at `moment`.
    pub(super) fn committed(&self, row: &LedgerRow, moment: f64, lag: f64) -> bool {
        row.at < moment - lag || self.0.get(&row.id).is_some_and(|at| *at <= moment)
    }
}
