//! I2 for settings and restocks: an acknowledged one is in the ledger, within the time of its request.
//!
//! They carry no id that the ledger knows, so each is matched with a row of its own by SKU, number of units
//! and time. Only a missing row is a fault: others may set and restock too.

use std::collections::BTreeMap;

use loadtest::history::{Op, Outcome, Record};

use super::{AuditReport, Invariant, Tally, Tolerance};
use crate::audit::facts::{Facts, Kind, LedgerRow};

/// Returns the matched rows with the time of the acknowledgement.
pub(super) fn check(
    facts: &Facts,
    history: &[Record],
    tolerance: Tolerance,
    tally: &mut Tally,
    report: &mut AuditReport,
) -> Vec<(i64, f64)> {
    let mut rows: BTreeMap<(Change, &str, i64), Vec<&LedgerRow>> = BTreeMap::new();
    for row in &facts.ledger {
        let (kind, units) = match row.kind {
            Kind::Set => (Change::Set, row.on_hand_after),
            Kind::Restock => (Change::Restock, row.delta),
            Kind::Order | Kind::Cancel | Kind::FenceReset => continue,
        };
        rows.entry((kind, &row.sku, units)).or_default().push(row);
    }
    let mut asked: Vec<&Record> = history
        .iter()
        .filter(|record| matches!(record.op, Op::Set | Op::Restock) && record.outcome() == Outcome::Accepted)
        .collect();
    // Who must be served first is served first: that finds a match for all if there is one.
    asked.sort_by(|a, b| a.received_at.total_cmp(&b.received_at));
    let mut matched = Vec::new();
    for record in asked {
        let kind = if record.op == Op::Set { Change::Set } else { Change::Restock };
        for line in &record.lines {
            let within = |row: &&LedgerRow| {
                row.at >= record.sent_at - tolerance.clock_skew_ms()
                    && row.at <= record.received_at + tolerance.clock_skew_ms()
            };
            let candidates = rows.entry((kind, &line.sku, line.quantity)).or_default();
            if let Some(at) = candidates.iter().position(within) {
                matched.push((candidates.remove(at).id, record.received_at));
                continue;
            }
            let subject = format!("{} of {} to {}", record.op.as_str(), line.quantity, line.sku);
            tally.lost.insert(format!("{subject} ({} {})", record.key, record.attempt));
            report.find(
                Invariant::I2,
                subject,
                "acknowledged, but not in the ledger at that time".to_owned(),
            );
            if kind == Change::Restock {
                tally.promise(&line.sku, -line.quantity);
            }
        }
    }
    matched
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Set,
    Restock,
}
