//! I1, the balance: start + restocked + cancelled − acknowledged = on hand ≥ 0, and each change starts from
//! what the one before it left.

use super::{
    AuditReport, Invariant, Tally,
    timeline::{Epoch, Timeline, Timelines},
};
use crate::audit::facts::Kind;

pub(super) fn check(timelines: &Timelines<'_>, tally: &Tally, report: &mut AuditReport) {
    for timeline in timelines.0.values() {
        let promised = tally.promised.get(timeline.sku).copied().unwrap_or_default();
        balance(timeline, promised, report);
        chain(timeline, report);
    }
    for (sku, units) in &tally.promised {
        if !timelines.0.contains_key(sku.as_str()) && *units > 0 {
            report.oversold += units;
            let text = format!("{units} units acknowledged of a SKU that the database does not know");
            report.find(Invariant::I1, sku, text);
        }
    }
}

fn balance(timeline: &Timeline<'_>, promised: i64, report: &mut AuditReport) {
    let epochs = timeline.epochs();
    let last = epochs.len().saturating_sub(1);
    for (number, epoch) in epochs.iter().enumerate() {
        let promised = if number == last { promised } else { 0 };
        // A negative stock is nothing that could still be offered: its units are already promised.
        let difference = epoch.end.max(0) - (expected(epoch) - promised);
        if difference == 0 {
            if promised != 0 {
                let text =
                    format!("the acknowledgements explain the stock, the ledger differs by {promised} units");
                report.find(Invariant::I1, timeline.sku, text);
            }
            continue;
        }
        let what = if difference > 0 {
            report.oversold += difference;
            format!("{difference} units oversold")
        } else {
            report.undersold -= difference;
            format!("{} units vanished", -difference)
        };
        report.find(Invariant::I1, timeline.sku, format!("{what}: {}", account(epoch, promised)));
    }
    let fewest = timeline.rows.iter().map(|row| row.on_hand_after).chain(timeline.on_hand).min();
    if let Some(fewest) = fewest.filter(|fewest| *fewest < 0) {
        report.find(Invariant::I1, timeline.sku, format!("the stock went down to {fewest}"));
    }
    if timeline.on_hand.is_none() {
        report.find(Invariant::I1, timeline.sku, "the ledger knows the SKU, the stock does not".to_owned());
    }
}

fn expected(epoch: &Epoch<'_>) -> i64 {
    epoch.start + epoch.rows.iter().map(|row| row.delta).sum::<i64>()
}

fn account(epoch: &Epoch<'_>, promised: i64) -> String {
    let sum = |kind| epoch.rows.iter().filter(|row| row.kind == kind).map(|row| row.delta).sum::<i64>();
    let acknowledged = -sum(Kind::Order) + promised;
    format!(
        "{} at the start + {} restocked + {} cancelled − {acknowledged} acknowledged ≠ {} on hand",
        epoch.start,
        sum(Kind::Restock),
        sum(Kind::Cancel),
        epoch.end
    )
}

/// Every change starts from what the one before it left, the first from nothing (a SKU begins at 0 with its first
/// setting): rows that are gone, and two faults that make up for each other in the balance, show here.
fn chain(timeline: &Timeline<'_>, report: &mut AuditReport) {
    let (mut left, mut by) = (0, None);
    for row in &timeline.rows {
        let found = row.on_hand_after - row.delta;
        if found != left {
            report.lost_updates += 1;
            let before =
                by.map_or_else(|| "it is the first".to_owned(), |id| format!("row {id} left {left}"));
            let text = format!("ledger row {} started from {found} although {before}", row.id);
            report.find(Invariant::I1, timeline.sku, text);
        }
        (left, by) = (row.on_hand_after, Some(row.id));
    }
    if let Some(on_hand) = timeline.on_hand.filter(|on_hand| *on_hand != left) {
        report.lost_updates += 1;
        let before = by
            .map_or_else(|| "the ledger has no row".to_owned(), |id| format!("ledger row {id} left {left}"));
        report.find(Invariant::I1, timeline.sku, format!("{before}, the stock is {on_hand}"));
    }
}
