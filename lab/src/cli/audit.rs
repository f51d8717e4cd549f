//! `audit`: judges a system that runs, from its database, its ZooKeeper and, if given, the clients' history.
//!
//! Locks and transactions of requests that are under way are no fault; so it waits for quiet, and says when there was
//! none: then the verdict is unknown.

use std::path::Path;

use lab::audit::{AuditInputs, AuditReport, Locks, audit as judge};
use lab::experiments::LOCKS;
use lab::report::table;
use zk_locks::Inspector;

use super::Context;
use super::args::AuditArgs;
use super::outcome::Outcome;
use super::system::System;

pub(crate) async fn audit(context: &Context, args: &AuditArgs) -> Outcome {
    let report = look(&System::of(&args.system)?, args.history.as_deref()).await?;
    context.result(&report, || text(&report))?;
    Ok(report.verdict.exit())
}

async fn look(system: &System, history: Option<&Path>) -> anyhow::Result<AuditReport> {
    let database = system.database().await?;
    let inspector = Inspector::connect(&system.zookeeper).await?;
    let report = judge(AuditInputs {
        locks: Some(Locks { inspector: &inspector, root: LOCKS, watches: None }),
        history,
        guarded: system.guarded,
        ..AuditInputs::of_database(&database)
    })
    .await?;
    inspector.close().await;
    database.close().await;
    Ok(report)
}

fn text(report: &AuditReport) -> String {
    let judged = &report.judged;
    let figures = [
        ("oversold", report.oversold.to_string()),
        ("undersold", report.undersold.to_string()),
        ("lost", report.lost.to_string()),
        ("doubled", report.doubled.to_string()),
        ("token regressions", report.token_regressions.to_string()),
        ("leftover nodes", report.leftover_nodes.to_string()),
        ("open transactions", report.open_transactions.to_string()),
    ];
    let rows: Vec<Vec<String>> = figures.map(|(name, figure)| vec![name.to_owned(), figure]).into();
    let mut lines = vec![
        table::render(&["figure".into(), String::new()], &rows),
        format!(
            "judged {} SKUs, {} orders, {} ledger rows, {} keys of the clients' history",
            judged.skus, judged.orders, judged.ledger_rows, judged.keys
        ),
    ];
    lines.extend(
        report.findings.iter().map(|found| format!("{}, {}: {}", found.invariant, found.subject, found.text)),
    );
    if judged.traffic {
        lines.push(
            "there was traffic all the time: whether locks and transactions are left could not be judged"
                .into(),
        );
    }
    if judged.accepted == 0 {
        lines.push("no order was accepted, so nothing can be learned".into());
    }
    if report.findings_omitted > 0 {
        lines.push(format!("and {} more findings", report.findings_omitted));
    }
    lines.push(format!("verdict {}", report.verdict));
    lines.join("\n")
}
