//! Replicas of order-service.
//!
//! Promised: each listens on a port of its own that stays its own through restarts; a start returns when all are
//! ready. Not promised: a mode or a writer that the service knows; it says so itself, and the start fails with it.

use std::{
    net::Ipv4Addr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::future::{join_all, try_join_all};

use crate::{Child, Command, Exit, RunDir, StartError, ports, programs, spawn::Place, start};

const READY: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(25);
const ANSWER: Duration = Duration::from_secs(2);
/// How long a replica may drain when the fleet is dropped instead of stopped.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// What a fleet runs with.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// Prefix of the instances' names: `<name>-1`, `<name>-2`, …
    pub name: String,
    /// How many replicas.
    pub replicas: usize,
    /// `ORDER_LOCK_MODE`.
    pub mode: String,
    /// `ORDER_WRITER`.
    pub writer: String,
    /// `DATABASE_URL`.
    pub database_url: String,
    /// `ZOOKEEPER_CONNECT`.
    pub zookeeper_connect: String,
    /// `ZOOKEEPER_SESSION_TIMEOUT_MS`.
    pub session_timeout: Duration,
    /// `ORDER_LOCK_WAIT_MS`.
    pub lock_wait: Duration,
    /// `ORDER_WORK_MS`.
    pub work: Duration,
    /// `ORDER_FAULTS_TOKEN`; without it the fault endpoints do not exist.
    pub faults_token: Option<String>,
    /// More variables for every replica; they win over the above.
    pub extra_env: Vec<(String, String)>,
}

/// One order-service of a fleet.
#[derive(Debug)]
pub struct Replica {
    name: String,
    port: u16,
    url: String,
    child: Mutex<Child>,
}

impl Replica {
    /// Its `ORDER_INSTANCE`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `http://127.0.0.1:<port>`; the same after a restart.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process of its last start.
    pub fn child(&self) -> Child {
        self.current().clone()
    }

    /// Whether `/readyz` answers 200 now; else what it said.
    pub async fn ready(&self) -> Result<(), String> {
        // A client of its own: connections of a pool die with the runtime that made them.
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER).build();
        let client = client.map_err(|error| error.to_string())?;
        let answer = client.get(format!("{}/readyz", self.url)).send().await;
        match answer.map_err(|error| format!("{error:?}"))? {
            answer if answer.status() == reqwest::StatusCode::OK => Ok(()),
            answer => {
                let status = answer.status();
                Err(format!("{status} {}", answer.text().await.unwrap_or_default()))
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until_ready(&self) -> Result<(), StartError> {
        start::until_ready(&self.child(), READY, POLL, async || self.ready().await).await
    }
}

/// Several order-services with one configuration. Dropping it stops them.
#[derive(Debug)]
pub struct Fleet {
    place: Place,
    config: FleetConfig,
    replicas: Vec<Replica>,
}

impl Fleet {
    /// Starts all replicas at once; returns when `/readyz` of each answers 200.
    pub async fn start(dir: &RunDir, config: FleetConfig) -> Result<Self, StartError> {
        let place = dir.place().clone();
        let ports = ports::free(config.replicas).map_err(|source| StartError::Io {
            doing: "find free ports for",
            path: place.path.clone(),
            source,
        })?;
        let mut replicas = Vec::with_capacity(ports.len());
        for (index, port) in ports.into_iter().enumerate() {
            let name = format!("{}-{}", config.name, index + 1);
            let child = Mutex::new(spawn(&place, &config, &name, port)?);
            let url = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
            replicas.push(Replica { name, port, url, child });
        }
        let fleet = Self { place, config, replicas };
        try_join_all(fleet.replicas.iter().map(Replica::until_ready)).await?;
        Ok(fleet)
    }

    /// What it runs with.
    pub fn config(&self) -> &FleetConfig {
        &self.config
    }

    /// Its replicas.
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// Starts a replica again, on the same port, and waits until it is ready. Only waits if it runs.
    pub async fn start_replica(&self, index: usize) -> Result<(), StartError> {
        let replica = &self.replicas[index];
        {
            let mut child = replica.current();
            if !child.is_running() {
                *child = spawn(&self.place, &self.config, &replica.name, replica.port)?;
            }
        }
        replica.until_ready().await
    }

    /// SIGTERM to all, SIGKILL to those that still run after `grace`; how each ended, in order.
    pub async fn stop(&self, grace: Duration) -> Vec<(String, Exit)> {
        let stops = self.replicas.iter().map(async |replica| {
            let exit = replica.child().stop(grace).await;
            (replica.name.clone(), exit)
        });
        join_all(stops).await
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let children: Vec<Child> = self.replicas.iter().map(Replica::child).collect();
        for child in &children {
            child.terminate();
            child.resume();
        }
        let until = Instant::now() + DROP_GRACE;
        for child in &children {
            if child.wait_exit_blocking(until).is_none() {
                child.kill();
            }
        }
    }
}

fn spawn(place: &Place, config: &FleetConfig, name: &str, port: u16) -> Result<Child, StartError> {
    let millis = |time: Duration| time.as_millis().to_string();
    let mut command = Command::new(name, programs::order_service()?)
        // It refuses variables that it does not know, and ours must not meet those of the caller.
        .env_remove_prefix("ORDER_")
        .env("DATABASE_URL", &config.database_url)
        .env("ZOOKEEPER_CONNECT", &config.zookeeper_connect)
        .env("ZOOKEEPER_SESSION_TIMEOUT_MS", millis(config.session_timeout))
        .env("ORDER_HTTP_ADDR", format!("{}:{port}", Ipv4Addr::LOCALHOST))
        .env("ORDER_INSTANCE", name)
        .env("ORDER_LOCK_MODE", &config.mode)
        .env("ORDER_WRITER", &config.writer)
        .env("ORDER_LOCK_WAIT_MS", millis(config.lock_wait))
        .env("ORDER_WORK_MS", millis(config.work));
    if let Some(token) = &config.faults_token {
        command = command.env("ORDER_FAULTS_TOKEN", token);
    }
    for (key, value) in &config.extra_env {
        command = command.env(key, value);
    }
    command.spawn_in(place)
}
