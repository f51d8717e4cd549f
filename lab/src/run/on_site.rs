//! One run on a stack that was there before and stays: its replicas, its database with all that happened earlier.
//!
//! The audit judges the whole of it, also what others did; facts and figures are those of the run.

use std::sync::PoisonError;
use std::time::Duration;

use stack::RunDir;
use zk_locks::Inspector;

use super::load::{Goal, Load};
use super::{Material, RunError, assemble, disturb, facts::Facts, pool};
use crate::audit::facts::Guarded;
use crate::audit::{AuditInputs, Locks, audit};
use crate::experiments::{Experiment, HOT_SKU, LOCKS};
use crate::faults::Strikes;
use crate::faults::engine::{self, EngineScene};
use crate::progress::Progress;
use crate::report::machine::zookeeper_version;
use crate::report::model::Versions;
use crate::report::{RunReport, table};
use crate::site::Site;

/// What something broken has to last beyond a session.
const BEYOND: Duration = Duration::from_secs(4);

/// Does one run; gives its report, and the versions of the servers.
pub async fn on_site(
    site: &Site,
    experiment: &Experiment,
    dir: &RunDir,
    seed: u64,
    progress: &Progress,
) -> Result<(RunReport, Versions), RunError> {
    let name = &experiment.name;
    progress.say(&format!(
        "{name}: {}/{} at {}, fault {}, {} clients for {} units",
        experiment.mode, experiment.writer, site.entry, experiment.faults, experiment.users, experiment.stock
    ));
    let database = pool(site.database.clone()).await?;
    let inspector = Inspector::connect(&site.zookeeper).await?;
    let strikes = Strikes::default();
    let goal = Goal { hosts: std::slice::from_ref(&site.entry), traces_to: site.traces_to.as_deref() };
    let load = Load::start(dir, experiment, goal, seed)?;
    let injected = async {
        let Some(project) = site.project.as_ref().filter(|_| !experiment.faults.is_none()) else {
            return Ok(());
        };
        let scene = EngineScene {
            project,
            inspector: &inspector,
            lock_path: experiment.lock_path(),
            entry: site.entry.clone(),
            broken: experiment.session_timeout + BEYOND,
            faults_token: site.faults_token.clone(),
            progress,
        };
        engine::inject(&scene, &experiment.faults, &strikes).await
    };
    let cut_short = disturb::until_load_ends(&load, experiment, injected, (&database, progress)).await?;
    progress.say(&format!("{name}: the load is over, auditing"));
    let audit = audit(AuditInputs {
        locks: Some(Locks { inspector: &inspector, root: LOCKS, watches: None }),
        history: Some(load.history()),
        guarded: Guarded::of(&experiment.mode, &experiment.writer),
        ..AuditInputs::of_database(&database)
    })
    .await?;
    let strikes = strikes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let since_ms = load.begun_ms();
    let span = (HOT_SKU, since_ms);
    let facts = Facts::read(&database, span, load.history(), &strikes, experiment.lock_wait).await?;
    let postgres: String = sqlx::query_scalar("show server_version").fetch_one(&database).await?;
    inspector.close().await;
    database.close().await;
    let versions = Versions {
        lockstock: env!("CARGO_PKG_VERSION").into(),
        postgres,
        zookeeper: zookeeper_version(&site.srvr().await).unwrap_or_else(|| "unknown".into()),
    };
    let mut report = assemble::report(Material { experiment, facts, audit, strikes, cut_short });
    report.links = Some(site.pages.links(since_ms, loadtest::history::now_ms(), report.order_ms.p95));
    progress.say(&format!("{name}: {}", table::verdict(&report)));
    Ok((report, versions))
}
