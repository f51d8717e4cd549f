//! I3: per SKU, tokens never go down, and each new holder's token is higher. After an operator's reset of the fence
//! they may begin anew. Where the writer asks the fence, it is not below the last token that wrote.

use std::collections::HashMap;

use super::{AuditReport, Invariant};
use crate::audit::facts::{Facts, Guarded, Kind, LedgerRow};

pub(super) fn check(facts: &Facts, report: &mut AuditReport) {
    let mut highest: HashMap<&str, &LedgerRow> = HashMap::new();
    let mut rows: Vec<&LedgerRow> = facts.ledger.iter().collect();
    rows.sort_by_key(|row| row.id);
    for row in rows {
        if row.kind == Kind::FenceReset {
            highest.remove(row.sku.as_str());
            continue;
        }
        let Some(token) = row.token else {
            if facts.guarded >= Guarded::ByLock {
                report.untokened += 1;
                report.find(Invariant::I3, &row.sku, format!("ledger row {} has no token", row.id));
            }
            continue;
        };
        let Some(before) = highest.get(row.sku.as_str()) else {
            highest.insert(&row.sku, row);
            continue;
        };
        let last = before.token.unwrap_or_default();
        if token < last {
            report.token_regressions += 1;
            let text =
                format!("ledger row {} has token {token}, row {} had {last} before", row.id, before.id);
            report.find(Invariant::I3, &row.sku, text);
            continue;
        }
        // Nodes of the simple recipe all have one name; there only the token tells holders apart.
        if token == last && row.lock_node != before.lock_node {
            report.token_regressions += 1;
            let text =
                format!("ledger rows {} and {} have token {token}, but two holders", before.id, row.id);
            report.find(Invariant::I3, &row.sku, text);
        }
        highest.insert(&row.sku, row);
    }
    if facts.guarded == Guarded::ByFence {
        fences(facts, &highest, report);
    }
}

/// A fence below a token that has passed it would let an overtaken holder through.
fn fences(facts: &Facts, highest: &HashMap<&str, &LedgerRow>, report: &mut AuditReport) {
    for stock in &facts.stock {
        let Some(row) = highest.get(stock.sku.as_str()) else { continue };
        let token = row.token.unwrap_or_default();
        if stock.fence < token {
            report.token_regressions += 1;
            let text = format!("the fence is {}, but ledger row {} has token {token}", stock.fence, row.id);
            report.find(Invariant::I3, &stock.sku, text);
        }
    }
}
