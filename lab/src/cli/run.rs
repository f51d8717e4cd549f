//! `run oversell`: one experiment on a private stack.

use std::time::Duration;

use lab::experiments::{Expectation, Experiment, default_writer, possible};

use super::Context;
use super::args::{Expect, OversellArgs};
use super::outcome::{Outcome, Stop};
use super::series::{Series, conduct};

pub(crate) async fn oversell(context: &Context, args: &OversellArgs) -> Outcome {
    let series = Series {
        name: "run",
        experiments: vec![experiment(args)?],
        seed: args.seed.unwrap_or_else(|| rand::random::<u32>().into()),
        keep_data: args.keep_data,
    };
    conduct(context, series).await
}

fn experiment(args: &OversellArgs) -> Result<Experiment, Stop> {
    let service = &args.service;
    let writer = service.writer.clone().unwrap_or_else(|| default_writer(&service.mode).to_owned());
    let wrong = |error: lab::experiments::NoClaim| Stop::Usage(error.to_string());
    possible(&service.mode, &writer, &args.fault).map_err(wrong)?;
    let expected = match args.expect {
        Some(Expect::Valid) => Expectation::Valid,
        Some(Expect::Oversold) => Expectation::Oversold,
        None => Expectation::of(&service.mode, &writer, &args.fault).map_err(wrong)?,
    };
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
        duration: Duration::from_secs(args.duration),
        replicas: service.replicas.into(),
        work,
        session_timeout,
    })
}
