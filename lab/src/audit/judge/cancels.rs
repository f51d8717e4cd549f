//! I2 for cancels: an acknowledged one is there, and gave every unit back.

use std::collections::{BTreeSet, HashMap};

use loadtest::history::{Op, Outcome, Record};

use super::{AuditReport, Invariant, Tally, ledger_of_orders::subject};
use crate::audit::facts::{Facts, Kind, OrderRow};

pub(super) fn check(facts: &Facts, history: &[Record], tally: &mut Tally, report: &mut AuditReport) {
    let orders: HashMap<&str, &OrderRow> = facts.orders.iter().map(|o| (o.id.as_str(), o)).collect();
    let mut returned: HashMap<(&str, &str), i64> = HashMap::new();
    for row in facts.ledger.iter().filter(|row| row.kind == Kind::Cancel) {
        let order = row.order_id.as_deref().unwrap_or_default();
        *returned.entry((order, row.sku.as_str())).or_default() += row.delta;
    }
    let acknowledged: BTreeSet<&str> = history
        .iter()
        .filter(|record| record.op == Op::Cancel && record.outcome() == Outcome::Accepted)
        .filter_map(|record| record.order_id.as_deref())
        .collect();
    for id in acknowledged {
        // A missing order row is found with the order.
        let Some(order) = orders.get(id) else { continue };
        let label = subject(Kind::Cancel, id);
        if !order.cancelled && tally.lost.insert(label.clone()) {
            report.find(Invariant::I2, label, "acknowledged, but the order is not cancelled".to_owned());
        }
        for line in &order.lines {
            let given_back = returned.get(&(id, line.sku.as_str())).copied().unwrap_or_default();
            if given_back != line.quantity {
                // Units given back are units not promised to anybody.
                tally.promise(&line.sku, given_back - line.quantity);
            }
        }
    }
}
