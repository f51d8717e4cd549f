//! Puts facts, strikes and the audit's figures together into the report of a run, and says whether the run could
//! prove anything at all.

use super::Material;
use super::facts::Facts;
use crate::audit::{AuditReport, Invariant};
use crate::experiments::{Experiment, FaultKind, HOT_SKU};
use crate::faults::{self, Strike};
use crate::report::model::{FaultRecord, Load, Orders, RunReport};
use crate::report::stats::percentiles;
use crate::verdict::Verdict;

/// The report of a run.
pub(super) fn report(material: Material<'_>) -> RunReport {
    let Material { experiment, facts, audit, strikes, cut_short } = material;
    let mut reasons = broken(&audit);
    let mut slow = Vec::new();
    for (requests, how) in
        [(facts.replies.unanswered, "got no reply"), (facts.replies.late, "got their reply late")]
    {
        if requests > 0 {
            slow.push(format!("{requests} requests {how} although their replica was not frozen"));
        }
    }
    let unconfirmed = unconfirmed(experiment, &strikes);
    // Units oversold prove the danger whatever the demand was, but not without the fault that was asked for.
    let struck = unconfirmed.is_empty();
    let mut missing = no_load(&facts.orders);
    missing.extend(unconfirmed);
    if !missing.is_empty() {
        missing.extend(cut_short);
    }
    // An invariant that was broken is broken, whatever else did not happen.
    let verdict = match audit.verdict {
        Verdict::Valid if !slow.is_empty() => Verdict::Invalid,
        Verdict::Valid if !missing.is_empty() => Verdict::Unknown,
        audited => audited,
    };
    reasons.extend(slow.into_iter().chain(missing));
    let records: Vec<FaultRecord> = strikes.iter().map(|strike| record(strike, &facts)).collect();
    let recovery_ms = records.iter().filter(|r| r.confirmed).filter_map(|r| r.recovery_ms).reduce(f64::max);
    RunReport {
        name: experiment.name.clone(),
        mode: experiment.mode.clone(),
        writer: experiment.writer.clone(),
        fault: experiment.faults.to_string(),
        expected: experiment.expected.verdict(),
        verdict,
        as_expected: struck && experiment.expected.is_met(verdict, audit.oversold),
        reasons,
        orders: facts.orders,
        audit,
        fenced_out: facts.fenced_writes.len() as u64,
        locks_lost: facts.lost_locks.len() as u64,
        faults_confirmed: records.iter().filter(|record| record.confirmed).count() as u64,
        orders_per_s: facts.orders_per_s(),
        order_ms: percentiles(&facts.order_ms),
        lock_wait_ms: percentiles(&facts.series.lock_waits_ms),
        recovery_ms,
        replies: facts.replies,
        load: Load {
            sku: HOT_SKU.into(),
            stock: experiment.stock,
            users: experiment.users,
            replicas: experiment.replicas,
            work_ms: millis(experiment.work),
            session_timeout_ms: millis(experiment.session_timeout),
            lock_wait_limit_ms: millis(experiment.lock_wait),
            duration_s: facts.duration_s,
        },
        faults: records,
        lost_locks: facts.lost_locks,
        fenced_writes: facts.fenced_writes,
        series: facts.series,
        links: None,
    }
}

/// What the audit found, one sentence for each broken invariant; all findings are in the audit's own part.
fn broken(audit: &AuditReport) -> Vec<String> {
    [Invariant::I1, Invariant::I2, Invariant::I3, Invariant::I4, Invariant::I5]
        .into_iter()
        .filter_map(|invariant| {
            let mut found = audit.findings.iter().filter(|finding| finding.invariant == invariant);
            let first = found.next()?;
            let more = match found.count() {
                0 => String::new(),
                more => format!(" (and {more} more findings)"),
            };
            Some(format!("{invariant}, {}: {}{more}", first.subject, first.text))
        })
        .collect()
}

/// What the load did not come to.
fn no_load(orders: &Orders) -> Vec<String> {
    let mut missing = Vec::new();
    if orders.accepted == 0 {
        missing.push("no order was accepted".into());
    }
    if orders.out_of_stock == 0 {
        missing
            .push("nobody was refused for lack of stock: the demand never met the end of the stock".into());
    }
    missing
}

/// The faults that did not happen as often as asked for.
fn unconfirmed(experiment: &Experiment, strikes: &[Strike]) -> Vec<String> {
    let mut missing = Vec::new();
    for kind in FaultKind::all() {
        let (required, confirmed) = (experiment.faults.required(kind), faults::confirmed(strikes, kind));
        if confirmed < required {
            missing.push(format!("{} was confirmed {confirmed} times of {required}", kind.name()));
        }
    }
    missing
}

fn record(strike: &Strike, facts: &Facts) -> FaultRecord {
    let at_s = facts.seconds(strike.at_ms);
    FaultRecord {
        kind: strike.kind.name().into(),
        at_s,
        instance: strike.instance.clone(),
        token: strike.token,
        session: format!("{:#x}", strike.session_id),
        confirmed: strike.confirmed,
        evidence: strike.evidence.clone(),
        recovery_ms: facts.recovery_ms(at_s, strike.token),
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiments::{Expectation, Faults};
    use crate::report::sample;

    fn strike(confirmed: bool) -> Strike {
        Strike {
            kind: FaultKind::FreezeHolder,
            at_ms: 100.0,
            until_ms: 200.0,
            instance: "order-1".into(),
            url: "http://a".into(),
            token: 1,
            session_id: 1,
            confirmed,
            evidence: String::new(),
            wrote_late: confirmed,
        }
    }

    fn run(expected: Expectation, audit: AuditReport, late: u64, confirmed: bool) -> RunReport {
        let faults: Faults = "freeze-holder".parse().expect("known");
        let experiment =
            Experiment { expected, faults, lock_wait: Duration::from_secs(8), ..Experiment::default() };
        let orders = Orders { accepted: 10, out_of_stock: 5, ..Orders::default() };
        let mut facts = Facts { orders, ..Facts::default() };
        facts.replies.late = late;
        let required = experiment.faults.required(FaultKind::FreezeHolder);
        let strikes = (0..required).map(|_| strike(confirmed)).collect();
        report(Material { experiment: &experiment, facts, audit, strikes, cut_short: None })
    }

    #[test]
    fn units_oversold_without_the_fault_prove_nothing() {
        let oversold = || sample::oversold().audit;
        assert_eq!(run(Expectation::Oversold, oversold(), 0, true).claim(), Verdict::Valid);
        let by_chance = run(Expectation::Oversold, oversold(), 0, false);
        assert_eq!((by_chance.verdict, by_chance.claim()), (Verdict::Invalid, Verdict::Unknown));
        assert_eq!(run(Expectation::Valid, oversold(), 0, false).claim(), Verdict::Invalid);
        // Without a lock the stock may never end.
        let (expected, stock) = (Expectation::Oversold, 10);
        let experiment = Experiment { mode: "none".into(), expected, stock, ..Experiment::default() };
        let orders = Orders { accepted: 1000, ..Orders::default() };
        let facts = Facts { orders, ..Facts::default() };
        let (audit, strikes) = (oversold(), Vec::new());
        let endless = report(Material { experiment: &experiment, facts, audit, strikes, cut_short: None });
        assert_eq!(endless.claim(), Verdict::Valid, "{:?}", endless.reasons);
    }

    #[test]
    fn late_replies_break_a_promise() {
        let sound = || AuditReport {
            verdict: Verdict::Valid,
            oversold: 0,
            findings: vec![],
            ..sample::oversold().audit
        };
        assert_eq!(run(Expectation::Valid, sound(), 0, true).claim(), Verdict::Valid);
        assert_eq!(run(Expectation::Valid, sound(), 1, true).claim(), Verdict::Invalid);
        assert_eq!(run(Expectation::Valid, sound(), 0, false).claim(), Verdict::Unknown);
    }
}
