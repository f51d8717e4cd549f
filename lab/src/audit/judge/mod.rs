//! From facts to figures, findings and the verdict. Pure: no I/O, no clock.

mod cancels;
mod changes;
mod commits;
mod ledger_of_orders;
mod orders;
mod quiet;
mod refusals;
mod stock;
mod tally;
mod timeline;
mod tokens;

use std::time::Duration;

use loadtest::history::{Claim, by_key};

use super::{
    facts::Facts,
    report::{AuditReport, Invariant, Judged},
};
use commits::Commits;
use tally::Tally;
use timeline::Timelines;

/// How far clocks may differ before the audit takes a difference for a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Between the client's clock and the database's. On one machine they are the same clock.
    pub clock_skew: Duration,
    /// Between writing a ledger row and its commit, where no reply tells that it was committed. More than the
    /// service lets a transaction sleep.
    pub commit_lag: Duration,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { clock_skew: Duration::from_millis(10), commit_lag: Duration::from_secs(5) }
    }
}

impl Tolerance {
    fn clock_skew_ms(self) -> f64 {
        self.clock_skew.as_secs_f64() * 1e3
    }

    fn commit_lag_ms(self) -> f64 {
        self.commit_lag.as_secs_f64() * 1e3
    }
}

/// Judges the facts.
pub fn judge(facts: &Facts, tolerance: Tolerance) -> AuditReport {
    let history = facts.history.as_deref();
    let keys = by_key(history.unwrap_or_default());
    let accepted = match history {
        Some(_) => keys.values().filter(|key| key.claim() == Claim::Accepted).count(),
        None => facts.orders.len(),
    };
    let mut report = AuditReport::new(Judged {
        skus: facts.stock.len() as u64,
        orders: facts.orders.len() as u64,
        ledger_rows: facts.ledger.len() as u64,
        accepted: accepted as u64,
        keys: keys.len() as u64,
        refusals: 0,
        traffic: false,
        not_judged: Vec::new(),
    });
    let timelines = Timelines::of(facts);
    let mut tally = Tally::default();
    // I2 first: what the client was promised beyond the ledger enters the balance of I1.
    ledger_of_orders::check(facts, &mut tally, &mut report);
    ledger_of_orders::check_keys(facts, &mut tally, &mut report);
    orders::check(facts, &keys, &mut tally, &mut report);
    if let Some(history) = history {
        cancels::check(facts, history, &mut tally, &mut report);
        let changes = changes::check(facts, history, tolerance, &mut tally, &mut report);
        let commits = Commits::of(facts, history, changes);
        refusals::check(&keys, &timelines, &commits, tolerance, &mut report);
    }
    stock::check(&timelines, &tally, &mut report);
    tokens::check(facts, &mut report);
    quiet::check(facts, &mut report);
    tally.figures(&mut report);
    report.conclude()
}
