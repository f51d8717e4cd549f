//! `up`: a stack that goes on running.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use lab::experiments::{Experiment, Faults, default_writer, possible};
use lab::supervisor::{self, Home, HomeError, LaunchError, ServeError, Served, UpOptions};
use lab::verdict::Exit;
use stack::{RunDir, Status, programs};

use super::args::{FAULTS_TOKEN_VARIABLE, ServiceArgs, SuperviseArgs, UpArgs};
use super::outcome::{Outcome, Stop};
use super::{Context, status};

pub(crate) async fn up(context: &Context, args: &UpArgs) -> Outcome {
    let options = options(&args.service, args.faults_token.clone())?;
    programs::check_all().map_err(|missing| missing_programs(&missing))?;
    let home_path = match &args.run_dir {
        Some(path) => {
            let made = std::fs::create_dir_all(path).and_then(|()| path.canonicalize());
            made.with_context(|| format!("cannot make the run folder {}", path.display()))?
        }
        None => RunDir::base()?,
    };
    let home = Home::find(Some(&home_path)).map_err(taken)?;
    home.check_free().map_err(taken)?;
    if home_path.join("postgres").exists() {
        let path = home_path.display();
        return Err(Stop::Usage(format!("{path} holds the data of an earlier stack; name another folder")));
    }
    let dir = match &args.run_dir {
        Some(_) => RunDir::open(&home_path)?,
        None => RunDir::create("up")?,
    };
    if args.foreground {
        return serve(context, &home, dir, &options, std::future::pending(), true).await;
    }
    context.progress.say("starting PostgreSQL, ZooKeeper and the services");
    let arguments = supervise_arguments(&args.service, &options, &home_path, dir.path());
    let token = options.faults_token.as_ref().map(|token| (FAULTS_TOKEN_VARIABLE, token.as_str()));
    let status =
        supervisor::launch(&home, &dir, &arguments, token, &context.interrupts).await.map_err(|error| {
            match error {
                LaunchError::Home(error) => taken(error),
                LaunchError::Interrupted { signal } => Stop::Signal(
                    signal,
                    format!("stopped what had been started; see {}", dir.path().display()),
                ),
                error => error.into(),
            }
        })?;
    context.result(&status, || format!("{}\n{}", status::text(&status), hints(&status, args)))?;
    Ok(Exit::Valid)
}

/// The process behind `up`.
pub(crate) async fn supervise(context: &Context, args: &SuperviseArgs) -> Outcome {
    supervisor::detach()?;
    let options = options(&args.service, args.faults_token.clone())?;
    let home = Home::find(Some(&args.home)).map_err(taken)?;
    let dir = RunDir::open(&args.run_dir)?;
    serve(context, &home, dir, &options, supervisor::abandoned(), false).await
}

async fn serve(
    context: &Context,
    home: &Home,
    dir: RunDir,
    options: &UpOptions,
    abandoned: impl Future<Output = ()>,
    print: bool,
) -> Outcome {
    let folder = dir.path().to_owned();
    let ready = |ready: &Status| {
        context.progress.say("everything is ready");
        if print && let Err(error) = context.result(ready, || status::text(ready)) {
            eprintln!("{error:#}");
        }
    };
    let kept = format!("everything is stopped, the run folder is kept: {}", folder.display());
    match supervisor::serve(home, dir, options, &context.interrupts, abandoned, ready).await {
        Ok(Served::Died(death)) | Err(ServeError::Died(death)) => Err(Stop::Death(Box::new(death), kept)),
        Ok(Served::Told(signal)) | Err(ServeError::Interrupted { signal }) => Err(Stop::Signal(signal, kept)),
        Err(ServeError::Home(error)) => Err(taken(error)),
        Err(error) => Err(error.into()),
    }
}

fn options(service: &ServiceArgs, faults_token: Option<String>) -> Result<UpOptions, Stop> {
    let writer = writer(service)?;
    Ok(UpOptions {
        mode: service.mode.clone(),
        writer,
        replicas: service.replicas.into(),
        work: service.work_ms.map_or_else(|| Experiment::default().work, Duration::from_millis),
        session_timeout: Duration::from_millis(service.session_timeout_ms),
        faults_token,
    })
}

/// The writer that was asked for, or the one that goes with the mode; refused where the pair makes no sense.
fn writer(service: &ServiceArgs) -> Result<String, Stop> {
    let writer = service.writer.clone().unwrap_or_else(|| default_writer(&service.mode).to_owned());
    possible(&service.mode, &writer, &Faults::none()).map_err(|error| Stop::Usage(error.to_string()))?;
    Ok(writer)
}

fn supervise_arguments(
    service: &ServiceArgs,
    options: &UpOptions,
    home: &Path,
    run_dir: &Path,
) -> Vec<OsString> {
    let text: [(&str, String); 5] = [
        ("--mode", options.mode.clone()),
        ("--writer", options.writer.clone()),
        ("--replicas", service.replicas.to_string()),
        ("--work-ms", options.work.as_millis().to_string()),
        ("--session-timeout-ms", service.session_timeout_ms.to_string()),
    ];
    let mut arguments: Vec<OsString> = vec!["supervise".into()];
    arguments.extend(text.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
    arguments.extend(["--home".into(), home.into(), "--run-dir".into(), run_dir.into()]);
    arguments
}

/// A stack that runs already is a wrong request, not a failure.
fn taken(error: HomeError) -> Stop {
    match error {
        error @ HomeError::Taken { .. } => Stop::Usage(error.to_string()),
        error => error.into(),
    }
}

/// Everything that is missing, with its remedy.
pub(crate) fn missing_programs(missing: &[stack::Missing]) -> Stop {
    let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
    Stop::Failure(anyhow::anyhow!(all.join("\n")))
}

fn hints(status: &Status, args: &UpArgs) -> String {
    let Some(service) = status.services.first() else { return String::new() };
    let url = &service.url;
    let home = match &args.run_dir {
        Some(path) => format!(" --run-dir {}", path.display()),
        None => String::new(),
    };
    format!(
        "\nTry:\n  curl -X PUT {url}/stock/sku-1 -H 'content-type: application/json' -d '{{\"on_hand\":100}}'\n  \
         curl {url}/orders -H 'content-type: application/json' -d '{{\"lines\":[{{\"sku\":\"sku-1\",\"quantity\":2}}]}}'\n  \
         curl {url}/stock/sku-1\n  lockstock locks --watch{home}\n  lockstock audit{home}\n  lockstock down{home}"
    )
}
