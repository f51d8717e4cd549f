//! `run oversell`: one experiment, on a private stack or on one that runs.

use std::time::Duration;

use lab::experiments::{Expectation, Experiment, FaultKind, default_writer, possible};

use super::Context;
use super::args::{Expect, OversellArgs};
use super::on_site;
use super::outcome::{Outcome, Stop};
use super::series::{Series, conduct};

/// A private stack sells what it has in this time, even if its machine is slow.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) async fn oversell(context: &Context, args: &OversellArgs) -> Outcome {
    if let Some(stack) = args.stack {
        return on_site::oversell(context, args, stack).await;
    }
    let series = Series {
        name: "run",
        experiments: vec![experiment(args)?],
        seed: args.seed.unwrap_or_else(|| rand::random::<u32>().into()),
        keep_data: args.keep_data,
    };
    conduct(context, series).await
}

/// What was said to be expected, or what follows from mode, writer and fault.
pub(super) fn expected(args: &OversellArgs, mode: &str, writer: &str) -> Result<Expectation, Stop> {
    match args.expect {
        Some(Expect::Valid) => Ok(Expectation::Valid),
        Some(Expect::Oversold) => Ok(Expectation::Oversold),
        None => {
            let claim = Expectation::of(mode, writer, &args.fault);
            claim.map_err(|error| Stop::Usage(error.to_string()))
        }
    }
}

fn experiment(args: &OversellArgs) -> Result<Experiment, Stop> {
    let service = &args.service;
    let writer = service.writer.clone().unwrap_or_else(|| default_writer(&service.mode).to_owned());
    let wrong = |error: lab::experiments::NoClaim| Stop::Usage(error.to_string());
    possible(&service.mode, &writer, &args.fault).map_err(wrong)?;
    if let Some(kind) = FaultKind::all().find(|kind| kind.needs_compose() && args.fault.includes(*kind)) {
        let name = kind.name();
        return Err(Stop::Usage(format!("{name} strikes containers: use it with --stack compose")));
    }
    let expected = expected(args, &service.mode, &writer)?;
    let work = service.work_ms.map_or_else(|| Experiment::work_for(&args.fault), Duration::from_millis);
    let session_timeout = Duration::from_millis(service.session_timeout_ms);
    Ok(Experiment {
        name: "oversell".into(),
        lock_wait: Experiment::lock_wait_for(session_timeout),
        stock: args.stock.unwrap_or_else(|| args.fault.stock()),
        mode: service.mode.clone(),
        writer,
        faults: args.fault.clone(),
        expected,
        users: args.users,
        duration: args.duration.map_or(PATIENCE, Duration::from_secs),
        replicas: service.replicas.into(),
        work,
        session_timeout,
    })
}
