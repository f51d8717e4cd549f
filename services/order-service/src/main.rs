//! The order service. Configured by environment variables; see `config.rs` for all of them.
//!
//! Exit codes: 0 after a graceful stop, 2 for a bad configuration or if replicas of another mode run, 70 else.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::Context;
use order_service::{
    app::{AppError, Application},
    config::Config,
    telemetry::{Telemetry, TelemetryError},
};

const BAD_CONFIGURATION: u8 = 2;
const BROKEN: u8 = 70;

/// How long spans may take to leave.
const FLUSH_WAIT: Duration = Duration::from_secs(2);
/// How long tasks may take to notice that the runtime ends.
const RUNTIME_WAIT: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let vars = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let vars: BTreeMap<String, String> = vars.collect();
    let config = match Config::parse(&vars, &default_instance()) {
        Ok(config) => config,
        Err(problems) => {
            eprintln!("order-service: {problems}");
            return BAD_CONFIGURATION.into();
        }
    };
    match run(&vars, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order-service: {error:#}");
            let refused = matches!(error.downcast_ref(), Some(AppError::Refused(_)));
            if refused || error.downcast_ref().is_some_and(TelemetryError::is_configuration) {
                BAD_CONFIGURATION.into()
            } else {
                BROKEN.into()
            }
        }
    }
}

fn run(vars: &BTreeMap<String, String>, config: Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let result = runtime.block_on(serve(vars, config));
    runtime.shutdown_timeout(RUNTIME_WAIT);
    result
}

async fn serve(vars: &BTreeMap<String, String>, config: Config) -> anyhow::Result<()> {
    let telemetry = Telemetry::start(vars, &config.instance).context("cannot start telemetry")?;
    let result = match Application::build(config, &telemetry.meter(), telemetry.registry()) {
        Ok(application) => application.run_until_stopped().await,
        Err(error) => Err(error),
    };
    // Blocks until the collector has answered or the time is over.
    tokio::task::spawn_blocking(|| telemetry.shut_down(FLUSH_WAIT)).await.context("the flush broke")?;
    Ok(result?)
}

/// The host's name and the process id.
fn default_instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(char::is_ascii_graphic).take(48).collect();
    let host = if host.is_empty() { "order-service".to_owned() } else { host };
    format!("{host}-{}", std::process::id())
}
