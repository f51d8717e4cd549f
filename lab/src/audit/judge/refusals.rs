//! I1, undersell: nobody is refused units that were there all the time.

use std::collections::BTreeMap;

use loadtest::history::{Claim, KeyHistory, Line, Record};

use super::{AuditReport, Commits, Invariant, Timelines, Tolerance};

pub(super) fn check(
    keys: &BTreeMap<&str, KeyHistory>,
    timelines: &Timelines<'_>,
    commits: &Commits,
    tolerance: Tolerance,
    report: &mut AuditReport,
) {
    for (key, history) in keys {
        let refused = history.refusal.as_ref().filter(|_| history.claim() == Claim::OutOfStock);
        let Some(refusal) = refused else { continue };
        report.judged.refusals += 1;
        let fewest = |sku: &str| {
            // The same key may have been decided by an attempt whose reply was lost.
            let from = history.first_sent_at - tolerance.clock_skew_ms();
            let to = refusal.received_at + tolerance.clock_skew_ms();
            let lag = tolerance.commit_lag_ms();
            timelines
                .0
                .get(sku)?
                .fewest_between(from, to, |row| commits.committed(row, history.first_sent_at, lag))
        };
        let Some((units, why)) = unjustified(history, refusal, fewest) else { continue };
        report.wrong_refusals += 1;
        report.undersold += units;
        report.find(Invariant::I1, format!("key {key}"), format!("refused as out of stock, but {why}"));
    }
}

/// The units refused without reason, and how that shows.
fn unjustified(
    history: &KeyHistory,
    refusal: &Record,
    fewest: impl Fn(&str) -> Option<i64>,
) -> Option<(i64, String)> {
    // A reply that names the SKU is judged by it; else one short SKU among the lines excuses it.
    let named = refusal.short_sku.as_deref();
    let lines: Vec<&Line> =
        history.lines.iter().filter(|line| named.is_none_or(|sku| sku == line.sku)).collect();
    let units = lines.iter().map(|line| line.quantity).sum();
    if lines.is_empty() {
        let units = history.lines.iter().map(|line| line.quantity).sum();
        return Some((units, format!("for {}, which was not ordered", named.unwrap_or_default())));
    }
    if let (Some(available), [line]) = (refusal.available, lines.as_slice())
        && available >= line.quantity
    {
        return Some((units, format!("by its own words {available} of {} were available", line.quantity)));
    }
    let there = lines.iter().map(|line| fewest(&line.sku).filter(|fewest| *fewest >= line.quantity));
    let there: Vec<i64> = there.collect::<Option<_>>()?;
    let each: Vec<_> = lines
        .iter()
        .zip(there)
        .map(|(line, fewest)| format!("at least {fewest} of {} were there for {}", line.sku, line.quantity))
        .collect();
    Some((units, format!("{} all the time", each.join(", "))))
}
