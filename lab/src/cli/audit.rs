//! `audit`: judges a system that runs, from its database, its ZooKeeper and, if given, the clients' history.
//!
//! Traffic during the audit would look like locks that were left; so it waits for quiet, and says when there was
//! none.

use std::str::FromStr as _;

use lab::audit::{AuditInputs, AuditReport, Locks, audit as judge};
use lab::experiments::LOCKS;
use lab::report::table;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use zk_locks::Inspector;

use super::Context;
use super::args::AuditArgs;
use super::outcome::Outcome;
use super::system::{self, System};

pub(crate) async fn audit(context: &Context, args: &AuditArgs) -> Outcome {
    let System { database_url, zookeeper } = match (&args.database_url, &args.zookeeper) {
        (Some(database_url), Some(zookeeper)) => {
            System { database_url: database_url.clone(), zookeeper: zookeeper.clone() }
        }
        _ => system::running(args.run_dir.as_deref())?,
    };
    let report = look(&database_url, &zookeeper, args).await?;
    context.result(&report, || text(&report))?;
    Ok(report.verdict.exit())
}

async fn look(database_url: &str, zookeeper: &str, args: &AuditArgs) -> anyhow::Result<AuditReport> {
    let options = PgConnectOptions::from_str(database_url)?.application_name("lockstock-audit");
    let database = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
    let inspector = Inspector::connect(zookeeper).await?;
    let report = judge(AuditInputs {
        locks: Some(Locks { inspector: &inspector, root: LOCKS, watches: None }),
        history: args.history.as_deref(),
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
    if report.findings_omitted > 0 {
        lines.push(format!("and {} more findings", report.findings_omitted));
    }
    lines.push(format!("verdict {}", report.verdict));
    lines.join("\n")
}
