//! Synthetic reports for the tests of this folder.

use super::model::{
    FaultRecord, FencedWrite, Load, LostLock, Machine, Orders, Percentiles, Replies, Report, RunReport,
    Series, Versions,
};
use crate::audit::{AuditReport, Finding, Invariant, Judged};
use crate::verdict::Verdict;

fn audit(oversold: i64) -> AuditReport {
    let finding = Finding {
        invariant: Invariant::I1,
        subject: "sku-1".into(),
        text: format!("{oversold} units oversold"),
    };
    AuditReport {
        verdict: if oversold > 0 { Verdict::Invalid } else { Verdict::Valid },
        oversold,
        undersold: 0,
        lost: 0,
        doubled: 0,
        token_regressions: 0,
        leftover_nodes: 0,
        open_transactions: 0,
        lost_updates: 0,
        wrong_refusals: 0,
        phantom: 0,
        mismatched: 0,
        contradicted: 0,
        untokened: 0,
        leftover_watches: 0,
        advisory_locks: 0,
        judged: Judged::default(),
        findings: if oversold > 0 { vec![finding] } else { vec![] },
        findings_omitted: 0,
    }
}

pub(crate) fn oversold() -> RunReport {
    RunReport {
        name: "no-lock".into(),
        mode: "none".into(),
        writer: "plain".into(),
        fault: "none".into(),
        expected: Verdict::Invalid,
        verdict: Verdict::Invalid,
        as_expected: true,
        reasons: vec!["I1: 37 units oversold".into()],
        orders: Orders { accepted: 137, out_of_stock: 20, failed: 0, unknown: 0 },
        audit: audit(37),
        fenced_out: 0,
        locks_lost: 0,
        faults_confirmed: 0,
        orders_per_s: 210.0,
        order_ms: Percentiles { p50: Some(20.0), p95: Some(30.0), p99: Some(50.0) },
        lock_wait_ms: Percentiles::default(),
        recovery_ms: None,
        replies: Replies { unanswered: 0, late: 0, slowest_ms: 60.0 },
        load: Load {
            sku: "sku-1".into(),
            stock: 100,
            users: 40,
            replicas: 3,
            work_ms: 15,
            session_timeout_ms: 2000,
            lock_wait_limit_ms: 8000,
            duration_s: 4.0,
        },
        faults: vec![],
        lost_locks: vec![],
        fenced_writes: vec![],
        series: Series {
            stock: vec![(0.0, 100), (1.0, 60), (2.0, 61), (3.0, 0)],
            accepted: vec![0.2, 0.4, 1.1, 2.9],
            lock_waits_ms: vec![],
        },
        links: None,
    }
}

pub(crate) fn faulted() -> RunReport {
    let fault = |kind: &str, at_s, recovery_ms| FaultRecord {
        kind: kind.into(),
        at_s,
        instance: "order-<2>".into(),
        token: 41,
        session: "0x1a".into(),
        confirmed: true,
        evidence: "no ledger row for token 41".into(),
        recovery_ms: Some(recovery_ms),
    };
    RunReport {
        name: "fair-faults".into(),
        mode: "zk-fair".into(),
        writer: "fenced".into(),
        fault: "expire-holder+freeze-holder".into(),
        expected: Verdict::Valid,
        verdict: Verdict::Valid,
        reasons: vec![],
        audit: audit(0),
        fenced_out: 1,
        locks_lost: 2,
        faults_confirmed: 2,
        lock_wait_ms: Percentiles { p50: Some(12.0), p95: Some(80.0), p99: Some(120.0) },
        recovery_ms: Some(2300.0),
        faults: vec![fault("expire-holder", 1.0, 35.0), fault("freeze-holder", 2.0, 2300.0)],
        lost_locks: vec![LostLock {
            at_s: 1.0,
            instance: "order-<2>".into(),
            token: Some(41),
            reason: "session-expired".into(),
        }],
        fenced_writes: vec![FencedWrite {
            at_s: 4.5,
            instance: "order-1".into(),
            token: Some(55),
            fence: Some(90),
        }],
        series: Series { lock_waits_ms: vec![1.0, 5.0, 80.0, 2300.0], ..oversold().series },
        ..oversold()
    }
}

pub(crate) fn report() -> Report {
    Report {
        verdict: Verdict::Valid,
        seed: 7,
        started_at: "2026-11-30T20:00:00Z".into(),
        duration_s: 41.0,
        versions: Versions::default(),
        machine: Machine::default(),
        runs: vec![oversold(), faulted()],
    }
}
