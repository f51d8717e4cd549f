//! The binary `loadtest`; see `loadtest --help`.
//!
//! Exit status: 0 the load ran (whatever the service answered), 64 wrong usage, 70 anything else.

mod cli;
mod output;
mod show;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::{cli::Cli, output::Stdout};

const USAGE: u8 = 64;
const SOFTWARE: u8 = 70;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
            return error.print().map_or(ExitCode::from(SOFTWARE), |()| status);
        }
    };
    // Installed before goose would install its own, which writes to standard output.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,goose=error")),
        )
        .init();
    match tokio::runtime::Runtime::new().context("no runtime").and_then(|runtime| runtime.block_on(load(cli)))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loadtest: {error:#}");
            ExitCode::from(SOFTWARE)
        }
    }
}

async fn load(cli: Cli) -> anyhow::Result<()> {
    let mut stdout = Stdout::take().context("cannot take standard output")?;
    let (config, output) = cli.into_config();
    tokio::spawn(stop_on_sigterm());
    let done = loadtest::run::run(&config, |time, progress| show::progress(&config, time, progress)).await?;
    if let Some(collector) = &output.traces_to {
        let records = loadtest::history::read(&config.history)?;
        // The load ran all the same; whoever looks for traces will miss their roots.
        if let Err(error) = loadtest::export::export(collector, &records).await {
            eprintln!("loadtest: traces have no roots: {:#}", anyhow::Error::from(error));
        }
    }
    let json = show::json(&done)?;
    if let Some(path) = &output.summary {
        std::fs::write(path, format!("{json}\n"))
            .with_context(|| format!("cannot write the summary {}", path.display()))?;
    }
    show::table(&done, &config);
    if output.json {
        stdout.line(&json).context("cannot write the summary to standard output")?;
    }
    Ok(())
}

/// goose handles Ctrl-C itself: once to stop, twice to leave at once.
async fn stop_on_sigterm() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            terminate.recv().await;
            goose::trigger_killswitch("SIGTERM");
        }
        Err(error) => tracing::warn!(%error, "SIGTERM will end the load without its summary"),
    }
}
