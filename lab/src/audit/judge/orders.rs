//! I2 between client and database: acknowledged means there, once and as ordered; refused means not there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use loadtest::history::{Claim, KeyHistory, Line};

use super::{AuditReport, Invariant, Tally, ledger_of_orders::subject};
use crate::audit::facts::{Facts, Kind, OrderRow};

/// Which orders of the database belong to which key, by all that ties them together: the reply kept under
/// the key, the id in the client's reply and the trace of the request that placed it.
#[derive(Debug)]
struct Links<'a> {
    orders: HashMap<&'a str, &'a OrderRow>,
    of_key: HashMap<&'a str, Linked<'a>>,
}

/// The ids of one key; an id belongs to one key only, the first that names it.
#[derive(Debug, Default)]
struct Linked<'a> {
    there: BTreeSet<&'a str>,
    missing: BTreeSet<&'a str>,
}

impl<'a> Links<'a> {
    fn of(facts: &'a Facts, keys: &'a BTreeMap<&'a str, KeyHistory>) -> Self {
        let orders: HashMap<&str, &OrderRow> = facts.orders.iter().map(|o| (o.id.as_str(), o)).collect();
        let mut by_trace: HashMap<&str, Vec<&str>> = HashMap::new();
        for order in &facts.orders {
            by_trace.entry(&order.trace_id).or_default().push(&order.id);
        }
        let kept: HashMap<&str, &str> =
            facts.keys.iter().filter_map(|row| Some((row.key.as_str(), row.order_id.as_deref()?))).collect();
        let mut claimed: HashSet<&str> = HashSet::new();
        let mut of_key = HashMap::new();
        for (key, history) in keys {
            let answered = history.order_ids.iter().map(String::as_str);
            let traced = history.trace_ids.iter().filter_map(|trace| by_trace.get(trace.as_str())).flatten();
            let ids = answered.chain(kept.get(key).copied()).chain(traced.copied());
            // Two keys answered with one order are two orders, one missing.
            let ids: BTreeSet<&str> = ids.collect();
            let ids = ids.into_iter().filter(|id| claimed.insert(id));
            let (there, missing) = ids.partition(|id| orders.contains_key(id));
            of_key.insert(*key, Linked { there, missing });
        }
        Self { orders, of_key }
    }
}

/// Units taken by order and SKU, according to the ledger.
type Taken<'a> = HashMap<&'a str, BTreeMap<&'a str, i64>>;

pub(super) fn check(
    facts: &Facts,
    keys: &BTreeMap<&str, KeyHistory>,
    tally: &mut Tally,
    report: &mut AuditReport,
) {
    let links = Links::of(facts, keys);
    let mut taken: Taken<'_> = HashMap::new();
    for row in facts.ledger.iter().filter(|row| row.kind == Kind::Order) {
        let of_order = taken.entry(row.order_id.as_deref().unwrap_or_default()).or_default();
        *of_order.entry(&row.sku).or_default() -= row.delta;
    }
    for (key, history) in keys {
        let of_key = &links.of_key[key];
        let linked = &of_key.there;
        let claim = history.claim();
        let label = format!("key {key}");
        if history.accepted && history.refusal.is_some() {
            report.contradicted += 1;
            report.find(Invariant::I2, label.clone(), "acknowledged and refused".to_owned());
        }
        let copies = linked.len().max(history.order_ids.len()) as u64;
        if copies > 1 {
            tally.double(&label, copies - 1);
            let ids: BTreeSet<&str> =
                linked.iter().copied().chain(history.order_ids.iter().map(String::as_str)).collect();
            report.find(Invariant::I2, label.clone(), format!("{copies} orders under one key: {ids:?}"));
        }
        match claim {
            Claim::Accepted => {
                present(history, of_key, &label, tally, report);
                for id in linked {
                    same_lines(links.orders[id], history, tally, report);
                }
            }
            Claim::OutOfStock | Claim::NotPlaced => {
                for id in linked {
                    report.phantom += 1;
                    let text = format!("the client was told that key {key} was not placed, but it was");
                    report.find(Invariant::I2, subject(Kind::Order, id), text);
                }
            }
            Claim::Unknown => {}
        }
        promise(history, claim, of_key, &taken, tally);
    }
}

/// An acknowledged order is there under the id of its acknowledgement.
fn present(
    history: &KeyHistory,
    linked: &Linked<'_>,
    label: &str,
    tally: &mut Tally,
    report: &mut AuditReport,
) {
    let missing = history.order_ids.iter().find(|id| !linked.there.contains(id.as_str()));
    let lost = match missing {
        // Called as the ledger check calls it, so that one lost order counts once.
        Some(id) if linked.missing.contains(id.as_str()) => subject(Kind::Order, id),
        Some(_) => label.to_owned(),
        None if linked.there.is_empty() => label.to_owned(),
        None => return,
    };
    if tally.lost.insert(lost.clone()) {
        let text = format!("acknowledged under {label}, but there is no order row of its own");
        report.find(Invariant::I2, lost, text);
    }
}

fn same_lines(order: &OrderRow, history: &KeyHistory, tally: &mut Tally, report: &mut AuditReport) {
    if order.lines != history.lines {
        let subject = subject(Kind::Order, &order.id);
        tally.mismatched.insert(subject.clone());
        let text = format!("holds {}, ordered was {}", show(&order.lines), show(&history.lines));
        report.find(Invariant::I2, subject, text);
    }
}

/// What the client may count on beyond what the ledger took; where it knows nothing, the ledger is right.
fn promise(history: &KeyHistory, claim: Claim, linked: &Linked<'_>, taken: &Taken<'_>, tally: &mut Tally) {
    if claim == Claim::Unknown {
        return;
    }
    let mut skus: BTreeMap<&str, i64> = BTreeMap::new();
    if claim == Claim::Accepted {
        skus.extend(history.lines.iter().map(|line| (line.sku.as_str(), line.quantity)));
    }
    // An order whose row is missing may still have taken its units.
    for id in linked.there.iter().chain(&linked.missing) {
        for (sku, units) in taken.get(id).into_iter().flatten() {
            *skus.entry(sku).or_default() -= units;
        }
    }
    for (sku, units) in skus.into_iter().filter(|(_, units)| *units != 0) {
        tally.promise(sku, units);
    }
}

fn show(lines: &[Line]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| format!("{} × {}", line.quantity, line.sku)).collect();
    lines.join(" + ")
}
