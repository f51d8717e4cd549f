//! What `demo` and `run` share: a private stack, some experiments, a report, and nothing left behind.

use std::path::Path;

use lab::experiments::Experiment;
use lab::guard::{Ended, guarded};
use lab::report::{self, Report, RunReport, table};
use lab::run;
use lab::verdict::Verdict;
use stack::{RunDir, Stack, ZooKeeperConfig, programs};

use super::Context;
use super::outcome::{Outcome, Stop};
use super::up::missing_programs;

/// What is run, and what of it is kept.
pub(crate) struct Series {
    /// Prefix of the run folder.
    pub(crate) name: &'static str,
    pub(crate) experiments: Vec<Experiment>,
    pub(crate) seed: u64,
    pub(crate) keep_data: bool,
}

pub(crate) async fn conduct(context: &Context, series: Series) -> Outcome {
    programs::check_all().map_err(|missing| missing_programs(&missing))?;
    let dir = RunDir::create(series.name)?;
    let folder = dir.path().to_owned();
    let watchdog = dir.watchdog().clone();
    context.progress.say(&format!("seed {}, run folder {}", series.seed, folder.display()));
    context.progress.say("starting PostgreSQL and three ZooKeeper servers");
    let kept = format!("everything is stopped, the run folder is kept: {}", folder.display());

    let mut stack =
        match guarded(&context.interrupts, &watchdog, Stack::start(dir, ZooKeeperConfig::default())).await {
            Ended::Done(stack) => stack?,
            Ended::Signal(signal) => return Err(Stop::Signal(signal, kept)),
            Ended::Death(death) => return Err(Stop::Death(Box::new(death), kept)),
        };
    let job = run::series(&mut stack, &series.experiments, series.seed, &context.progress);
    let ended = guarded(&context.interrupts, &watchdog, job).await;
    context.progress.say("stopping everything");
    stack.stop().await;
    let report = match ended {
        Ended::Done(Ok(report)) => report,
        Ended::Done(Err(error)) => {
            return Err(anyhow::anyhow!("{:#}\n{kept}", anyhow::Error::from(error)).into());
        }
        Ended::Signal(signal) => return Err(Stop::Signal(signal, kept)),
        Ended::Death(death) => return Err(Stop::Death(Box::new(death), kept)),
    };
    finish(context, &report, &folder, series.keep_data)
}

fn finish(context: &Context, report: &Report, folder: &Path, keep_data: bool) -> Outcome {
    if report.verdict == Verdict::Valid && !keep_data {
        remove_data(folder)?;
    }
    publish(context, report, folder)
}

/// Writes the report, and says it.
pub(super) fn publish(context: &Context, report: &Report, folder: &Path) -> Outcome {
    let paths = report::write(folder, report)?;
    context.result(report, || {
        let mut lines: Vec<String> = report.runs.iter().flat_map(reasons).collect();
        lines.extend(report.runs.iter().filter_map(|run| Some(run.links.as_ref()?.text())));
        format!(
            "\n{}\n\n{}\nverdict {}, seed {}\nreport  {}\n        {}",
            table::runs(&report.runs),
            lines.join("\n"),
            report.verdict,
            report.seed,
            paths.json.display(),
            paths.html.display()
        )
    })?;
    Ok(report.verdict.exit())
}

fn reasons(run: &RunReport) -> Vec<String> {
    run.reasons.iter().map(|reason| format!("{}: {reason}", run.name)).collect()
}

/// Takes the servers' data out of a run folder; reports, histories and logs stay.
fn remove_data(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
