//! A stack that runs already: where its parts are, and how its replicas are set.
//!
//! Two ways to one: from the host through the container engine, or from within its network, where everything has a name
//! and the environment says the rest. Nothing here changes it.

mod links;

use std::collections::HashMap;
use std::str::FromStr as _;
use std::time::Duration;

use serde::Deserialize;
use sqlx::postgres::PgConnectOptions;
use stack::{ComposeProject, EngineError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub use links::{Links, Pages};

const ANSWER: Duration = Duration::from_secs(5);

/// A stack that runs.
#[derive(Debug, Clone)]
pub struct Site {
    /// The one address of its replicas.
    pub entry: String,
    /// The database.
    pub database: PgConnectOptions,
    /// ZooKeeper: hosts and chroot.
    pub zookeeper: String,
    /// A collector, as OTLP over HTTP.
    pub traces_to: Option<String>,
    /// Where to look.
    pub pages: Pages,
    /// How its replicas are set.
    pub settings: Settings,
    /// Opens the fault endpoints, if there are any.
    pub faults_token: Option<String>,
    /// What can break it.
    pub project: Option<ComposeProject>,
}

/// How the replicas of a stack are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `ORDER_LOCK_MODE`.
    pub mode: String,
    /// The writer that goes with it, or the one that was asked for.
    pub writer: String,
    /// How many there are.
    pub replicas: usize,
    /// `ORDER_WORK_MS`.
    pub work: Duration,
    /// `ZOOKEEPER_SESSION_TIMEOUT_MS`.
    pub session_timeout: Duration,
    /// `ORDER_LOCK_WAIT_MS`.
    pub lock_wait: Duration,
}

/// A stack cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A setting that should be there is not, or is no number.
    #[error("the stack does not say {0}")]
    Unsaid(String),
    /// The address of the database is none.
    #[error("the address of the database")]
    Database(#[from] sqlx::Error),
    /// The replicas cannot be asked.
    #[error("asking the replicas at {entry}")]
    Entry {
        /// Their address.
        entry: String,
        /// Why not.
        source: reqwest::Error,
    },
}

#[derive(Deserialize)]
struct Ready {
    mode: String,
    writer: String,
}

impl Site {
    /// A compose project on this host.
    pub async fn of_project(project: ComposeProject) -> Result<Self, SiteError> {
        let url = async |service: &str, port| {
            let address = project.container(service).await?.address(port).await?;
            Ok::<_, EngineError>(format!("http://{address}"))
        };
        let entry = url("entry", 8080).await?;
        let pages = Pages {
            jaeger: url("jaeger", 16686).await?,
            // The only part that some stacks do without.
            grafana: url("grafana", 3000).await.ok(),
            prometheus: url("prometheus", 9090).await?,
        };
        let mut servers = Vec::new();
        for service in ["zoo1", "zoo2", "zoo3"] {
            match project.container(service).await {
                Ok(container) => servers.push(container.address(2181).await?.to_string()),
                Err(EngineError::NoContainer { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let postgres = project.container("postgres").await?;
        let address = postgres.address(5432).await?;
        let password = postgres.read("/run/lockstock/postgres").await?;
        let database = PgConnectOptions::new_without_pgpass()
            .host(&address.ip().to_string())
            .port(address.port())
            .username("lockstock")
            .password(&password)
            .database("lockstock");
        let replicas = project.containers("order-service").await?;
        let env = replicas[0].env().await?;
        Ok(Self {
            settings: Settings::read(&entry, replicas.len(), &env).await?,
            traces_to: Some(url("jaeger", 4318).await?),
            zookeeper: format!("{}/lockstock", servers.join(",")),
            faults_token: env.get("ORDER_FAULTS_TOKEN").filter(|token| !token.is_empty()).cloned(),
            entry,
            database,
            pages,
            project: Some(project),
        })
    }

    /// From within: what the environment of the service `loadtest` says.
    pub async fn inside(env: &HashMap<String, String>) -> Result<Self, SiteError> {
        let said = |name: &str| env.get(name).cloned().ok_or_else(|| SiteError::Unsaid(name.to_owned()));
        let entry = said("LOCKSTOCK_ENTRY_URL")?;
        let replicas = said("LOCKSTOCK_REPLICAS")?;
        let replicas = replicas.parse().map_err(|_| SiteError::Unsaid("LOCKSTOCK_REPLICAS".to_owned()))?;
        Ok(Self {
            settings: Settings::read(&entry, replicas, env).await?,
            database: PgConnectOptions::from_str(&said("LOCKSTOCK_DATABASE_URL")?)?,
            zookeeper: said("LOCKSTOCK_ZOOKEEPER")?,
            traces_to: Some(said("LOCKSTOCK_TRACES_TO")?),
            pages: Pages {
                jaeger: said("LOCKSTOCK_JAEGER_URL")?,
                grafana: if runs("grafana:3000").await { Some(said("LOCKSTOCK_GRAFANA_URL")?) } else { None },
                prometheus: said("LOCKSTOCK_PROMETHEUS_URL")?,
            },
            entry,
            faults_token: None,
            project: None,
        })
    }

    /// What the first ZooKeeper server says of itself; nothing if it does not answer.
    pub async fn srvr(&self) -> String {
        let server = self.zookeeper.split([',', '/']).next().unwrap_or_default();
        let conversation = async {
            let mut stream = tokio::net::TcpStream::connect(server).await?;
            stream.write_all(b"srvr").await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.map(|_| answer)
        };
        tokio::time::timeout(ANSWER, conversation).await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// Whether the network has a service of that name. Some stacks do without Grafana.
async fn runs(service: &str) -> bool {
    tokio::net::lookup_host(service).await.is_ok()
}

impl Settings {
    async fn read(entry: &str, replicas: usize, env: &HashMap<String, String>) -> Result<Self, SiteError> {
        let failed = |source| SiteError::Entry { entry: entry.to_owned(), source };
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER).build().map_err(failed)?;
        let answer = http.get(format!("{entry}/readyz")).send().await.map_err(failed)?;
        let ready: Ready = answer.error_for_status().map_err(failed)?.json().await.map_err(failed)?;
        let millis = |name: &str| {
            let number = env.get(name).and_then(|text| text.parse().ok());
            number.map(Duration::from_millis).ok_or_else(|| SiteError::Unsaid(name.to_owned()))
        };
        Ok(Self {
            mode: ready.mode,
            writer: ready.writer,
            replicas,
            work: millis("ORDER_WORK_MS")?,
            session_timeout: millis("ZOOKEEPER_SESSION_TIMEOUT_MS")?,
            lock_wait: millis("ORDER_LOCK_WAIT_MS")?,
        })
    }
}
