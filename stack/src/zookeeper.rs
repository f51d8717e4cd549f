//! A private ZooKeeper ensemble.

use std::time::Duration;

use crate::{AskError, Child, RunDir, StartError};

/// Shape and clock of an ensemble.
#[derive(Debug, Clone)]
pub struct ZooKeeperConfig {
    /// How many servers; 1 is a standalone server.
    pub servers: usize,
    /// The tick: sessions expire on its multiples.
    pub tick: Duration,
    /// The shortest session a client may ask for.
    pub min_session: Duration,
    /// The longest.
    pub max_session: Duration,
}

impl Default for ZooKeeperConfig {
    fn default() -> Self {
        Self {
            servers: 3,
            tick: Duration::from_millis(500),
            min_session: Duration::from_secs(1),
            max_session: Duration::from_secs(60),
        }
    }
}

/// A private ensemble on free loopback ports. Servers are counted from 0. Dropping it stops it.
#[derive(Debug)]
pub struct ZooKeeper {}

impl ZooKeeper {
    /// Starts all servers; returns once each one serves clients.
    pub async fn start(_dir: &RunDir, _config: ZooKeeperConfig) -> Result<Self, StartError> {
        todo!()
    }
    /// `host:port,host:port…` followed by the chroot (`""` or `/path`).
    pub fn connect_string(&self, _chroot: &str) -> String {
        todo!()
    }
    /// `host:port` of one server's client port.
    pub fn address(&self, _server: usize) -> std::net::SocketAddr {
        todo!()
    }
    /// How many servers it has, running or not.
    pub fn servers(&self) -> usize {
        todo!()
    }
    /// The process of a server's last start.
    pub fn server(&self, _server: usize) -> Child {
        todo!()
    }
    /// Asks one server a four-letter word.
    pub async fn four_letter(&self, _server: usize, _word: &str) -> Result<String, AskError> {
        todo!()
    }
    /// Watches held by the running servers.
    pub async fn watch_count(&self) -> Result<u64, AskError> {
        todo!()
    }
    /// The server that leads (or stands alone), if there is one now.
    pub async fn leader(&self) -> Option<usize> {
        todo!()
    }
    /// Stops one server; returns once its process is gone.
    pub async fn stop_server(&self, _server: usize) {
        todo!()
    }
    /// Starts one server again; returns once it serves clients.
    pub async fn start_server(&self, _server: usize) -> Result<(), StartError> {
        todo!()
    }
    /// Stops all servers.
    pub async fn stop_all(&self) {
        todo!()
    }
    /// Starts all servers that do not run; returns once each one serves clients.
    pub async fn start_all(&self) -> Result<(), StartError> {
        todo!()
    }
}
