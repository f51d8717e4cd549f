//! PostgreSQL, ZooKeeper and order-services together.
//!
//! Promised: dropping it at any point stops everything it started, first the services, then what they use.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, process, time::Duration};

use futures::future::{join, join_all};

use crate::{
    Fleet, FleetConfig, Observatory, Postgres, PostgresStatus, RunDir, ServiceStatus, StartError, Status,
    Watchdog, ZooKeeper, ZooKeeperConfig, ZooKeeperStatus,
};

/// A little more than the services' own grace, `ORDER_SHUTDOWN_GRACE_MS`.
const GRACE: Duration = Duration::from_secs(12);

/// Everything of one run. Dropping it stops everything, in order and bounded.
#[derive(Debug)]
pub struct Stack {
    // Dropped in this order.
    fleet: Option<Fleet>,
    observatory: Option<Observatory>,
    zookeeper: ZooKeeper,
    postgres: Postgres,
    dir: RunDir,
}

impl Stack {
    /// PostgreSQL and ZooKeeper, started at the same time.
    pub async fn start(dir: RunDir, zookeeper: ZooKeeperConfig) -> Result<Self, StartError> {
        let (postgres, zookeeper) = join(Postgres::start(&dir), ZooKeeper::start(&dir, zookeeper)).await;
        Ok(Self { fleet: None, observatory: None, zookeeper: zookeeper?, postgres: postgres?, dir })
    }

    /// The run folder.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The database server.
    pub fn postgres(&self) -> &Postgres {
        &self.postgres
    }

    /// The ensemble.
    pub fn zookeeper(&self) -> &ZooKeeper {
        &self.zookeeper
    }

    /// The order-services, once started.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_ref()
    }

    /// Starts Jaeger and Prometheus where they are found; every fleet that starts later is watched by them.
    pub async fn observe(&mut self) {
        self.observatory = Some(Observatory::start(&self.dir).await);
    }

    /// Starts order-services and keeps them with the stack; a fleet that is there already is stopped first.
    pub async fn start_fleet(&mut self, mut config: FleetConfig) -> Result<&Fleet, StartError> {
        if let Some(former) = self.fleet.take() {
            former.stop(GRACE).await;
        }
        config.extra_env.extend(self.observatory.iter().flat_map(Observatory::env));
        let fleet = self.fleet.insert(Fleet::start(&self.dir, config).await?);
        if let Some(observatory) = &self.observatory {
            observatory.watch(fleet)?;
        }
        Ok(fleet)
    }

    /// The register of unexpected deaths; clone it to watch while the stack is used.
    pub fn watchdog(&self) -> &Watchdog {
        self.dir.watchdog()
    }

    /// What runs and where; asks each service whether it is ready.
    pub async fn status(&self) -> Status {
        let (config, replicas) = match &self.fleet {
            Some(fleet) => (Some(fleet.config()), fleet.replicas()),
            None => (None, [].as_slice()),
        };
        let services = replicas.iter().map(async |replica| ServiceStatus {
            name: replica.name().into(),
            url: replica.url().into(),
            pid: replica.child().pid(),
            mode: config.map_or_else(String::new, |config| config.mode.clone()),
            writer: config.map_or_else(String::new, |config| config.writer.clone()),
            ready: replica.ready().await.is_ok(),
        });
        let connect = config.map(|config| config.zookeeper_connect.clone());
        let url = config.map(|config| config.database_url.clone());
        Status {
            run_dir: self.dir.path().into(),
            supervisor_pid: process::id(),
            postgres: PostgresStatus { url: url.unwrap_or_else(|| self.postgres.url("postgres")) },
            zookeeper: ZooKeeperStatus {
                connect: connect.unwrap_or_else(|| self.zookeeper.connect_string("")),
            },
            services: join_all(services).await,
            observatory: self.observatory.as_ref().map(Observatory::status),
        }
    }

    /// Writes the status to `<run folder>/status.json`, at once or not at all.
    pub async fn write_status(&self) -> Result<Status, StartError> {
        let status = self.status().await;
        let path = self.dir.sub("status.json");
        let written =
            serde_json::to_vec_pretty(&status).map_err(Into::into).and_then(|text| replace(&path, &text));
        written.map_err(|source| StartError::Io { doing: "write the status", path, source })?;
        Ok(status)
    }

    /// Stops everything in order, bounded, and gives the folder back.
    pub async fn stop(self) -> RunDir {
        let Self { fleet, observatory, zookeeper, postgres, dir } = self;
        if let Some(fleet) = &fleet {
            fleet.stop(GRACE).await;
        }
        if let Some(observatory) = &observatory {
            observatory.stop().await;
        }
        join(zookeeper.stop_all(), postgres.stop()).await;
        dir
    }
}

/// A reader sees the former text or the new one. It holds a password, so only this user reads it.
fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension("json.new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text)?;
    fs::rename(draft, path)
}
