//! The load of a run: `loadtest` as a child, so that its way to stop and its runtime are no business of ours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadtest::history::now_ms;
use stack::{Child, Command, Exit, Missing, RunDir, StartError, programs};

use crate::experiments::{Experiment, HOT_SKU};

/// Orders after the SKU was seen sold out: enough that a late unit would be found.
const TAIL: u32 = 60;
/// How much longer than the service's own deadline a client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(3);

/// A load that runs.
#[derive(Debug)]
pub(super) struct Load {
    child: Child,
    history: PathBuf,
    begun_ms: f64,
}

/// Where it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal<'a> {
    /// Addresses that take orders.
    pub(super) hosts: &'a [String],
    /// Where the root spans of its requests go afterwards, as OTLP over HTTP.
    pub(super) traces_to: Option<&'a str>,
}

/// The load could not be driven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The program is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// It could not be started.
    #[error("the load could not be started")]
    Start(#[from] StartError),
    /// It ended otherwise than it should.
    #[error("{name}, which drives the load, ended with {exit}; the end of its log:\n{tail}")]
    Failed {
        /// The child's name in the run.
        name: String,
        /// How.
        exit: Exit,
        /// The end of its log.
        tail: String,
    },
    /// It did not end.
    #[error("the load was still running {} s after it should have ended", late.as_secs())]
    Hung {
        /// How late.
        late: Duration,
    },
}

impl Load {
    /// Starts it against all hosts; it sets the stock first.
    pub(super) fn start(
        dir: &RunDir,
        experiment: &Experiment,
        goal: Goal<'_>,
        seed: u64,
    ) -> Result<Self, LoadError> {
        let begun_ms = now_ms();
        let name = format!("{}-load", experiment.name);
        let history = dir.sub(format!("{}-history.jsonl", experiment.name));
        let hosts = goal.hosts.iter().flat_map(|url| ["--host", url.as_str()]);
        let traces = goal.traces_to.into_iter().flat_map(|to| ["--traces-to", to]);
        let child = Command::new(name, programs::loadtest()?)
            .arg("oversell")
            .args(hosts)
            .args(traces)
            .args(["--sku", HOT_SKU, "--run", &format!("{}-{begun_ms}", experiment.name)])
            .args(["--users".to_owned(), experiment.users.to_string()])
            .args(["--stock".to_owned(), experiment.stock.to_string()])
            .args(["--duration".to_owned(), experiment.duration.as_secs().to_string()])
            .args(["--seed".to_owned(), seed.to_string()])
            .args(["--tail".to_owned(), TAIL.to_string()])
            .args([
                "--attempt-timeout-ms".to_owned(),
                (experiment.lock_wait + PATIENCE).as_millis().to_string(),
            ])
            // The bound is time, not a count: without a lock far more is sold than there is.
            .args(["--orders-max".to_owned(), u32::MAX.to_string()])
            .arg("--history")
            .arg(&history)
            .arg("--summary")
            .arg(dir.sub(format!("{}-summary.json", experiment.name)))
            .may_end()
            .spawn(dir)?;
        Ok(Self { child, history, begun_ms })
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended(&self, experiment: &Experiment) -> Result<(), LoadError> {
        let late = experiment.lock_wait * 2 + Duration::from_mins(1);
        match self.child.wait_exit(experiment.duration + late).await {
            Some(exit) if exit.success() => Ok(()),
            Some(exit) => {
                let (name, tail) = (self.child.name().to_owned(), self.child.log_tail(12));
                Err(LoadError::Failed { name, exit, tail })
            }
            None => Err(LoadError::Hung { late }),
        }
    }

    /// When it began, milliseconds since the Unix epoch: what is older belongs to another run.
    pub(super) fn begun_ms(&self) -> f64 {
        self.begun_ms
    }

    /// Where the clients' history is written.
    pub(super) fn history(&self) -> &Path {
        &self.history
    }
}
