//! One run: a new database, a new chroot and a new fleet; load and faults at the same time; then audit and facts.
//!
//! Promised: runs on one stack do not see each other; the faults stop when the load does, and a frozen replica goes
//! on in any case. Not promised: a verdict when the run cannot be done; that is an error.

mod assemble;
mod disturb;
mod facts;
mod load;
mod on_site;
mod replies;
mod series;

use std::str::FromStr as _;
use std::sync::PoisonError;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use stack::{AskError, FleetConfig, Stack, StartError};
use uuid::Uuid;
use zk_locks::Inspector;

use crate::audit::facts::Guarded;
use crate::audit::{AuditInputs, AuditReport, CollectError, Locks, Watches, audit};
use crate::experiments::{Experiment, HOT_SKU, LOCKS};
use crate::faults::{self, Aim, Evidence, Scene, SceneError, Strike, Strikes};
use crate::limits;
use crate::progress::Progress;
use crate::report::{RunReport, table};
use load::{Goal, Load};

pub use facts::{Facts, FactsError};
pub use load::LoadError;
pub use on_site::on_site;
pub use series::series;

/// A run could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A service could not be started.
    #[error("the services of run {run} could not be started")]
    Start {
        /// Name of the run.
        run: String,
        /// Why.
        source: StartError,
    },
    /// A server did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The database cannot be reached.
    #[error("connecting to the database of the run")]
    Database(#[from] sqlx::Error),
    /// ZooKeeper cannot be reached.
    #[error("connecting to ZooKeeper")]
    ZooKeeper(#[from] zk_locks::OperationError),
    /// The load could not be driven.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The faults could not be injected.
    #[error("injecting faults")]
    Faults(#[from] SceneError),
    /// What happened could not be read.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The audit could not read its sources.
    #[error("auditing")]
    Audit(#[from] CollectError),
}

/// Everything a run leaves behind for its report.
struct Material<'a> {
    experiment: &'a Experiment,
    facts: Facts,
    audit: AuditReport,
    strikes: Vec<Strike>,
    /// Why faults were not injected to the end.
    cut_short: Option<String>,
}

/// Does one run on a stack whose servers are up.
pub async fn execute(
    stack: &mut Stack,
    experiment: &Experiment,
    seed: u64,
    progress: &Progress,
) -> Result<RunReport, RunError> {
    let name = &experiment.name;
    progress.say(&format!(
        "{name}: {}/{}, fault {}, {} clients for {} units",
        experiment.mode, experiment.writer, experiment.faults, experiment.users, experiment.stock
    ));
    let faults_token = Uuid::new_v4().simple().to_string();
    let config = config(stack, experiment, &faults_token).await?;
    let (database_url, connect_string) = (config.database_url.clone(), config.zookeeper_connect.clone());
    stack.start_fleet(config).await.map_err(|source| RunError::Start { run: name.clone(), source })?;
    let Some(fleet) = stack.fleet() else { unreachable!("started just now") };
    let zookeeper = stack.zookeeper();
    let database = connect(&database_url).await?;
    let inspector = Inspector::connect(&connect_string).await?;
    let baseline = zookeeper.watch_count().await?;

    let scene = (!experiment.faults.is_none()).then(|| {
        let aim = aim(experiment, faults_token);
        let evidence = Evidence::new(database.clone(), HOT_SKU);
        Scene::new(fleet, zookeeper, &inspector, evidence, aim, progress)
    });
    let strikes = Strikes::default();
    let hosts: Vec<String> = fleet.replicas().iter().map(|replica| replica.url().to_owned()).collect();
    let load = Load::start(stack.dir(), experiment, Goal { hosts: &hosts, traces_to: None }, seed)?;
    let injected = async {
        match &scene {
            Some(scene) => {
                faults::inject(scene, &experiment.faults, &mut StdRng::seed_from_u64(seed), &strikes).await
            }
            None => Ok(()),
        }
    };
    let cut_short = disturb::until_load_ends(&load, experiment, injected, (&database, progress)).await?;
    progress.say(&format!("{name}: the load is over, auditing"));
    let watches = Watches {
        baseline,
        now: Box::new(|| Box::pin(async { zookeeper.watch_count().await.map_err(Into::into) })),
    };
    let audit = audit(AuditInputs {
        locks: Some(Locks { inspector: &inspector, root: LOCKS, watches: Some(watches) }),
        history: Some(load.history()),
        guarded: Guarded::of(&experiment.mode, &experiment.writer),
        ..AuditInputs::of_database(&database)
    })
    .await?;
    let strikes = strikes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let span = (HOT_SKU, load.begun_ms());
    let facts = Facts::read(&database, span, load.history(), &strikes, experiment.lock_wait).await?;
    inspector.close().await;
    database.close().await;
    let report = assemble::report(Material { experiment, facts, audit, strikes, cut_short });
    progress.say(&format!("{name}: {}", table::verdict(&report)));
    Ok(report)
}

fn aim(experiment: &Experiment, faults_token: String) -> Aim {
    Aim {
        lock_path: experiment.lock_path(),
        work: experiment.work,
        wants_late_write: experiment.wants_late_write(),
        faults_token,
    }
}

async fn config(stack: &Stack, experiment: &Experiment, faults_token: &str) -> Result<FleetConfig, AskError> {
    let slug = experiment.slug();
    Ok(FleetConfig {
        name: experiment.name.clone(),
        replicas: experiment.replicas,
        mode: experiment.mode.clone(),
        writer: experiment.writer.clone(),
        database_url: stack.postgres().create_database(&slug).await?,
        zookeeper_connect: stack.zookeeper().connect_string(&format!("/{slug}")),
        session_timeout: experiment.session_timeout,
        lock_wait: experiment.lock_wait,
        work: experiment.work,
        faults_token: Some(faults_token.to_owned()),
        extra_env: limits::within(experiment.session_timeout),
    })
}

async fn connect(url: &str) -> Result<PgPool, sqlx::Error> {
    pool(PgConnectOptions::from_str(url)?).await
}

/// A few connections under a name of our own, so that nobody takes them for those of a replica.
async fn pool(options: PgConnectOptions) -> Result<PgPool, sqlx::Error> {
    PgPoolOptions::new()
        .max_connections(3)
        .acquire_timeout(Duration::from_secs(10))
        .connect_with(options.application_name("lockstock"))
        .await
}
