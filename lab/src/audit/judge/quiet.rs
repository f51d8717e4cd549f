//! I4 and I5: once quiet, nothing is left. While there is traffic, only what stays is known to be left.

use super::{AuditReport, Invariant};
use crate::audit::facts::Facts;

pub(super) fn check(facts: &Facts, report: &mut AuditReport) {
    match &facts.locks {
        None => report.judged.not_judged.push(Invariant::I4),
        Some(left) => {
            report.leftover_nodes = left.nodes.len() as u64;
            for node in &left.nodes {
                report.find(
                    Invariant::I4,
                    node,
                    "was there all the time the audit waited for quiet".to_owned(),
                );
            }
            if left.passing {
                not_quiet(Invariant::I4, report);
            } else if let Some((before, now)) = left.watches.filter(|(before, now)| now > before) {
                report.leftover_watches = now - before;
                let text = format!("{now} on the servers, {before} before the run");
                report.find(Invariant::I4, "watches", text);
            }
        }
    }
    match &facts.sessions {
        None => report.judged.not_judged.push(Invariant::I5),
        Some(left) => {
            if left.passing {
                not_quiet(Invariant::I5, report);
            }
            report.open_transactions = left.transactions.len() as u64;
            for session in &left.transactions {
                report.find(Invariant::I5, "open transaction", session.clone());
            }
            report.advisory_locks = left.advisory_locks.len() as u64;
            for lock in &left.advisory_locks {
                report.find(Invariant::I5, "advisory lock", lock.clone());
            }
        }
    }
}

fn not_quiet(invariant: Invariant, report: &mut AuditReport) {
    report.judged.traffic = true;
    report.judged.not_judged.push(invariant);
}
