//! `run oversell --stack …`: one experiment on a stack that runs and stays.

use std::time::Duration;

use lab::experiments::{Experiment, FaultKind};
use lab::guard::{Ended, guarded};
use lab::report::Report;
use lab::report::machine::machine;
use lab::run;
use lab::site::Site;
use stack::{ComposeProject, RunDir};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Context;
use super::args::{OversellArgs, RunningStack};
use super::outcome::{Outcome, Stop};
use super::run::expected;
use super::series::publish;

pub(super) async fn oversell(context: &Context, args: &OversellArgs, stack: RunningStack) -> Outcome {
    let site = match stack {
        RunningStack::Compose => Site::of_project(ComposeProject::new(&args.project)).await?,
        RunningStack::Inside => Site::inside(&std::env::vars().collect()).await?,
    };
    let experiment = experiment(args, &site)?;
    let dir = RunDir::create("run")?;
    let folder = dir.path().to_owned();
    let seed = args.seed.unwrap_or_else(rand::random);
    context.progress.say(&format!("seed {seed}, run folder {}", folder.display()));
    let started_at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let (begun, machine, watchdog) = (context.progress.seconds(), machine(), dir.watchdog().clone());
    let job = Box::pin(run::on_site(&site, &experiment, &dir, seed, &context.progress));
    let left =
        || format!("the load is stopped, the stack runs on, the run folder is kept: {}", folder.display());
    let (run, versions) = match guarded(&context.interrupts, &watchdog, job).await {
        Ended::Done(done) => done?,
        Ended::Signal(signal) => return Err(Stop::Signal(signal, left())),
        Ended::Death(death) => return Err(Stop::Death(Box::new(death), left())),
    };
    let runs = vec![run];
    let duration_s = context.progress.seconds() - begun;
    let verdict = Report::verdict_of(&runs);
    let report = Report { verdict, seed, started_at, duration_s, versions, machine, runs };
    publish(context, &report, &folder)
}

fn experiment(args: &OversellArgs, site: &Site) -> Result<Experiment, Stop> {
    let settings = &site.settings;
    let faults = args.fault.each_once();
    if site.project.is_none() && !faults.is_none() {
        return Err(Stop::Usage(
            "faults take the container engine: run it from the host, with --stack compose".into(),
        ));
    }
    if faults.includes(FaultKind::ExpireHolder) && site.faults_token.is_none() {
        let how = "set ORDER_FAULTS_TOKEN in .env and start the stack again";
        return Err(Stop::Usage(format!("expire-holder takes the fault endpoints of the service: {how}")));
    }
    let enough = 60 + 60 * faults.steps().len() as u64;
    Ok(Experiment {
        name: "oversell".into(),
        expected: expected(args, &settings.mode, &settings.writer)?,
        stock: args.stock.unwrap_or_else(|| faults.stock_on_compose(settings.work)),
        mode: settings.mode.clone(),
        writer: settings.writer.clone(),
        faults,
        users: args.users,
        duration: args.duration.map_or_else(|| Duration::from_secs(enough), Duration::from_secs),
        replicas: settings.replicas,
        work: settings.work,
        session_timeout: settings.session_timeout,
        lock_wait: settings.lock_wait,
    })
}
