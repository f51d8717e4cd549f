//! Jaeger and Prometheus beside a private stack, where their programs are found.
//!
//! Promised: they listen on loopback only and end with the stack; one that is missing, does not start or dies takes
//! nothing with it. Not promised: Jaeger's pages; one that was built from its Go module has an API only.

use std::{
    env, fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::future::join;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Child, Command, Fleet, RunDir, StartError, ports, programs, start};

const READY: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
const ANSWER: Duration = Duration::from_secs(2);
const STOP: Duration = Duration::from_secs(3);
/// Where services send their spans, by OpenTelemetry's own name.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What watches a stack. Dropping it ends it.
#[derive(Debug)]
pub struct Observatory {
    jaeger: Result<Tool, String>,
    prometheus: Result<Tool, String>,
}

/// One that runs.
#[derive(Debug)]
struct Tool {
    child: Child,
    url: String,
    /// Jaeger: where spans go, as OTLP over gRPC.
    collector: String,
    /// Prometheus: the file that says what it reads.
    targets: PathBuf,
}

/// Where one of them is, or why it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Its address.
    At(String),
    /// Why it is not there.
    Not(String),
}

/// Both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservatoryStatus {
    /// Traces.
    pub jaeger: Seen,
    /// Metrics.
    pub prometheus: Seen,
}

impl Observatory {
    /// Starts what is there; returns when it answers, or when it does not. No Jaeger where the environment names a
    /// collector already.
    pub async fn start(dir: &RunDir) -> Self {
        let jaeger = async {
            match env::var(COLLECTOR) {
                Ok(named) => Err(format!("traces go to {named}, as {COLLECTOR} says")),
                Err(_) => jaeger(dir).await.map_err(|error| error.to_string()),
            }
        };
        let prometheus = async { prometheus(dir).await.map_err(|error| error.to_string()) };
        let (jaeger, prometheus) = join(jaeger, prometheus).await;
        Self { jaeger, prometheus }
    }

    /// What services need to be told.
    pub fn env(&self) -> Vec<(String, String)> {
        self.jaeger.iter().map(|jaeger| (COLLECTOR.to_owned(), jaeger.collector.clone())).collect()
    }

    /// Has the metrics of these replicas read from now on.
    pub fn watch(&self, fleet: &Fleet) -> Result<(), StartError> {
        let Ok(prometheus) = &self.prometheus else { return Ok(()) };
        let hosts: Vec<&str> =
            fleet.replicas().iter().map(|replica| replica.url().trim_start_matches("http://")).collect();
        write(&prometheus.targets, &json!([{ "targets": hosts }]))
    }

    /// Where they are.
    pub fn status(&self) -> ObservatoryStatus {
        let seen = |tool: &Result<Tool, String>| match tool {
            Ok(tool) => match tool.child.exit() {
                None => Seen::At(tool.url.clone()),
                Some(exit) => Seen::Not(format!("it ended with {exit}")),
            },
            Err(why) => Seen::Not(why.clone()),
        };
        ObservatoryStatus { jaeger: seen(&self.jaeger), prometheus: seen(&self.prometheus) }
    }

    /// Ends both, bounded.
    pub async fn stop(&self) {
        let stop = async |tool: &Result<Tool, String>| {
            if let Ok(tool) = tool {
                tool.child.stop(STOP).await;
            }
        };
        join(stop(&self.jaeger), stop(&self.prometheus)).await;
    }
}

async fn jaeger(dir: &RunDir) -> Result<Tool, StartError> {
    let program = programs::jaeger()?;
    let [pages, grpc, collector, health] = addresses(dir)?;
    let config = dir.sub("jaeger.json");
    write(
        &config,
        &json!({
            "service": {
                "extensions": ["jaeger_storage", "jaeger_query", "healthcheckv2"],
                "pipelines": { "traces": {
                    "receivers": ["otlp"], "processors": ["batch"], "exporters": ["jaeger_storage_exporter"],
                } },
                "telemetry": { "metrics": { "level": "none" } },
            },
            "extensions": {
                "healthcheckv2": { "use_v2": true, "http": { "endpoint": health } },
                "jaeger_query": {
                    "storage": { "traces": "memory" },
                    // It would trace itself, into itself.
                    "enable_tracing": false,
                    "http": { "endpoint": pages },
                    "grpc": { "endpoint": grpc },
                },
                "jaeger_storage": { "backends": { "memory": { "memory": { "max_traces": 50_000 } } } },
            },
            "receivers": { "otlp": { "protocols": { "grpc": { "endpoint": collector } } } },
            "processors": { "batch": { "timeout": "500ms" } },
            "exporters": { "jaeger_storage_exporter": { "trace_storage": "memory" } },
        }),
    )?;
    let child = Command::new("jaeger", program).arg("--config").arg(&config).may_end().spawn(dir)?;
    until(&child, &format!("http://{health}/status")).await?;
    let collector = format!("http://{collector}");
    Ok(Tool { child, url: format!("http://{pages}"), collector, targets: PathBuf::new() })
}

async fn prometheus(dir: &RunDir) -> Result<Tool, StartError> {
    let program = programs::prometheus()?;
    let [pages] = addresses(dir)?;
    let (config, data) = (dir.sub("prometheus.json"), dir.sub("prometheus"));
    let failed = |source| StartError::Io { doing: "make the folder", path: data.clone(), source };
    fs::create_dir_all(&data).map_err(failed)?;
    let targets = data.join("targets.json");
    write(&targets, &json!([]))?;
    write(
        &config,
        &json!({
            "global": { "scrape_interval": "2s" },
            "scrape_configs": [{ "job_name": "order-service", "file_sd_configs": [{ "files": [targets] }] }],
        }),
    )?;
    let child = Command::new("prometheus", program)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.join("data").display()))
        .arg(format!("--web.listen-address={pages}"))
        .may_end()
        .spawn(dir)?;
    until(&child, &format!("http://{pages}/-/ready")).await?;
    Ok(Tool { child, url: format!("http://{pages}"), collector: String::new(), targets })
}

async fn until(child: &Child, url: &str) -> Result<(), StartError> {
    start::until_ready(child, READY, POLL, async || {
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER).build();
        let answer = client.map_err(|error| error.to_string())?.get(url).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
    })
    .await
}

fn addresses<const N: usize>(dir: &RunDir) -> Result<[String; N], StartError> {
    let failed =
        |source| StartError::Io { doing: "find free ports for", path: dir.path().to_owned(), source };
    let mut free = ports::free(N).map_err(failed)?.into_iter();
    Ok(std::array::from_fn(|_| format!("{}:{}", Ipv4Addr::LOCALHOST, free.next().unwrap_or_default())))
}

/// JSON is YAML too.
fn write(path: &Path, document: &serde_json::Value) -> Result<(), StartError> {
    let failed = |source| StartError::Io { doing: "write", path: path.to_owned(), source };
    fs::write(path, document.to_string()).map_err(failed)
}
