//! PostgreSQL, ZooKeeper and order-services together.

use crate::{Fleet, FleetConfig, Postgres, RunDir, StartError, Status, Watchdog, ZooKeeper, ZooKeeperConfig};

/// Everything of one run. Dropping it stops everything, in order and bounded.
#[derive(Debug)]
pub struct Stack {}

impl Stack {
    /// PostgreSQL and ZooKeeper, started at the same time.
    pub async fn start(_dir: RunDir, _zookeeper: ZooKeeperConfig) -> Result<Self, StartError> {
        todo!()
    }
    /// The run folder.
    pub fn dir(&self) -> &RunDir {
        todo!()
    }
    /// The database server.
    pub fn postgres(&self) -> &Postgres {
        todo!()
    }
    /// The ensemble.
    pub fn zookeeper(&self) -> &ZooKeeper {
        todo!()
    }
    /// The order-services, once started.
    pub fn fleet(&self) -> Option<&Fleet> {
        todo!()
    }
    /// Starts order-services and keeps them with the stack; a fleet that is there already is stopped first.
    pub async fn start_fleet(&mut self, _config: FleetConfig) -> Result<&Fleet, StartError> {
        todo!()
    }
    /// The register of unexpected deaths; clone it to watch while the stack is used.
    pub fn watchdog(&self) -> &Watchdog {
        todo!()
    }
    /// What runs and where; asks each service whether it is ready.
    pub async fn status(&self) -> Status {
        todo!()
    }
    /// Writes the status to `<run folder>/status.json`, at once or not at all.
    pub async fn write_status(&self) -> Result<Status, StartError> {
        todo!()
    }
    /// Stops everything in order, bounded, and gives the folder back.
    pub async fn stop(self) -> RunDir {
        todo!()
    }
}
