//! I2 within the database: an order has one ledger row per line, a cancelled one another that gives it
//! back, and the ledger has no other rows of orders.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{AuditReport, Invariant, Tally};
use crate::audit::facts::{Facts, Kind, LedgerRow, OrderRow};

type Entries<'a> = HashMap<(&'a str, Kind, &'a str), Vec<&'a LedgerRow>>;

pub(super) fn check(facts: &Facts, tally: &mut Tally, report: &mut AuditReport) {
    let mut entries: Entries<'_> = HashMap::new();
    for row in facts.ledger.iter().filter(|row| matches!(row.kind, Kind::Order | Kind::Cancel)) {
        let order = row.order_id.as_deref().unwrap_or_default();
        entries.entry((order, row.kind, row.sku.as_str())).or_default().push(row);
    }
    for order in &facts.orders {
        for line in &order.lines {
            let taken = entries.remove(&(&order.id, Kind::Order, &line.sku)).unwrap_or_default();
            rows_of(order, Kind::Order, &line.sku, -line.quantity, &taken, tally, report);
            let returned = entries.remove(&(&order.id, Kind::Cancel, &line.sku)).unwrap_or_default();
            if order.cancelled {
                rows_of(order, Kind::Cancel, &line.sku, line.quantity, &returned, tally, report);
            } else if !returned.is_empty() {
                mismatch(order, format!("returned {} although it is not cancelled", line.sku), tally, report);
            }
        }
        if order.lines.is_empty() {
            mismatch(order, "has no lines".to_owned(), tally, report);
        }
    }
    let orders: BTreeMap<&str, &OrderRow> = facts.orders.iter().map(|o| (o.id.as_str(), o)).collect();
    let mut left: Vec<_> =
        entries.into_iter().map(|((order, _, sku), rows)| (rows[0].id, order, sku)).collect();
    left.sort_unstable();
    for (row, order, sku) in left {
        if let Some(order) = orders.get(order) {
            mismatch(order, format!("ledger row {row} is for {sku}, which it has no line of"), tally, report);
        } else if tally.lost.insert(subject(Kind::Order, order)) {
            let text = format!("ledger row {row} for {sku} belongs to no order row");
            report.find(Invariant::I2, subject(Kind::Order, order), text);
        }
    }
}

/// A reply that is kept under a key names an order that is there.
pub(super) fn check_keys(facts: &Facts, tally: &mut Tally, report: &mut AuditReport) {
    let orders: HashSet<&str> = facts.orders.iter().map(|order| order.id.as_str()).collect();
    for kept in &facts.keys {
        let Some(id) = kept.order_id.as_deref().filter(|id| !orders.contains(id)) else { continue };
        if tally.lost.insert(subject(Kind::Order, id)) {
            let text = format!("the reply kept under key {} names it, but there is no order row", kept.key);
            report.find(Invariant::I2, subject(Kind::Order, id), text);
        }
    }
}

/// What a report calls an order or its cancel.
pub(super) fn subject(kind: Kind, order: &str) -> String {
    match kind {
        Kind::Cancel => format!("cancel of order {order}"),
        _ => format!("order {order}"),
    }
}

fn rows_of(
    order: &OrderRow,
    kind: Kind,
    sku: &str,
    delta: i64,
    rows: &[&LedgerRow],
    tally: &mut Tally,
    report: &mut AuditReport,
) {
    let subject = subject(kind, &order.id);
    match rows {
        [] => {
            if tally.lost.insert(subject.clone()) {
                report.find(Invariant::I2, subject, format!("no ledger row for {sku}"));
            }
            return;
        }
        [_] => {}
        [_, more @ ..] => {
            tally.double(&subject, more.len() as u64);
            report.find(Invariant::I2, subject, format!("{} ledger rows for {sku}", rows.len()));
        }
    }
    for row in rows.iter().filter(|row| row.delta != delta) {
        let text = format!("ledger row {} changes {sku} by {}, the line says {delta}", row.id, row.delta);
        mismatch(order, text, tally, report);
    }
}

fn mismatch(order: &OrderRow, text: String, tally: &mut Tally, report: &mut AuditReport) {
    let subject = subject(Kind::Order, &order.id);
    tally.mismatched.insert(subject.clone());
    report.find(Invariant::I2, subject, text);
}
