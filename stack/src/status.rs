//! What runs and where: the document of `lockstock status --json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ObservatoryStatus;

/// What runs and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The run folder.
    pub run_dir: PathBuf,
    /// The process that started all others; they end with it.
    pub supervisor_pid: u32,
    /// The database.
    pub postgres: PostgresStatus,
    /// The ensemble.
    pub zookeeper: ZooKeeperStatus,
    /// The order-services.
    pub services: Vec<ServiceStatus>,
    /// What watches them, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observatory: Option<ObservatoryStatus>,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostgresStatus {
    /// With user and password.
    pub url: String,
}

/// The ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZooKeeperStatus {
    /// Hosts, ports and chroot.
    pub connect: String,
}

/// An order-service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its `ORDER_INSTANCE`.
    pub name: String,
    /// Its base URL.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Its `ORDER_LOCK_MODE`.
    pub mode: String,
    /// Its `ORDER_WRITER`.
    pub writer: String,
    /// Whether `/readyz` answered 200 just now.
    pub ready: bool,
}
