//! Several runs one after the other on one stack, and the report over them.

use stack::Stack;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{RunError, connect, execute};
use crate::experiments::Experiment;
use crate::progress::Progress;
use crate::report::Report;
use crate::report::machine::{machine, zookeeper_version};
use crate::report::model::Versions;

/// Does all runs, in order, whatever their verdicts.
pub async fn series(
    stack: &mut Stack,
    experiments: &[Experiment],
    seed: u64,
    progress: &Progress,
) -> Result<Report, RunError> {
    let started_at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let (begun, machine, versions) = (progress.seconds(), machine(), versions(stack).await?);
    let mut runs = Vec::with_capacity(experiments.len());
    for experiment in experiments {
        runs.push(execute(stack, experiment, seed, progress).await?);
    }
    let duration_s = progress.seconds() - begun;
    Ok(Report { verdict: Report::verdict_of(&runs), seed, started_at, duration_s, versions, machine, runs })
}

async fn versions(stack: &Stack) -> Result<Versions, RunError> {
    let database = connect(&stack.postgres().url("postgres")).await?;
    let postgres: String = sqlx::query_scalar("show server_version").fetch_one(&database).await?;
    database.close().await;
    let srvr = stack.zookeeper().four_letter(0, "srvr").await?;
    Ok(Versions {
        lockstock: env!("CARGO_PKG_VERSION").into(),
        postgres,
        zookeeper: zookeeper_version(&srvr).unwrap_or_else(|| "unknown".into()),
    })
}
