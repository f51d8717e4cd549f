//! Replicas of order-service.

use std::time::Duration;

use crate::{Child, Exit, RunDir, StartError};

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
pub struct Replica {}

impl Replica {
    /// Its `ORDER_INSTANCE`.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// `http://127.0.0.1:<port>`; the same after a restart.
    pub fn url(&self) -> &str {
        todo!()
    }
    /// The process of its last start.
    pub fn child(&self) -> Child {
        todo!()
    }
}

/// Several order-services with one configuration. Dropping it stops them.
#[derive(Debug)]
pub struct Fleet {}

impl Fleet {
    /// Starts all replicas at once; returns when `/readyz` of each answers 200.
    pub async fn start(_dir: &RunDir, _config: FleetConfig) -> Result<Self, StartError> {
        todo!()
    }
    /// What it runs with.
    pub fn config(&self) -> &FleetConfig {
        todo!()
    }
    /// Its replicas.
    pub fn replicas(&self) -> &[Replica] {
        todo!()
    }
    /// Starts a replica again, on the same port, and waits until it is ready.
    pub async fn start_replica(&self, _index: usize) -> Result<(), StartError> {
        todo!()
    }
    /// SIGTERM to all, SIGKILL to those that still run after `grace`; how each ended, in order.
    pub async fn stop(&self, _grace: Duration) -> Vec<(String, Exit)> {
        todo!()
    }
}
