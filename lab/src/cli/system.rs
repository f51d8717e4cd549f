//! Which system a command looks at: the one that `up` left running, or one whose addresses are given.

use std::path::Path;
use std::str::FromStr as _;

use anyhow::Context as _;
use lab::audit::facts::Guarded;
use lab::supervisor::{Home, HomeError};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgPool};
use stack::Status;

use super::args::SystemArgs;

/// Addresses of a running system.
pub(crate) struct System {
    pub(crate) database_url: String,
    pub(crate) zookeeper: String,
    /// What its changes are guarded by, if that is known.
    pub(crate) guarded: Guarded,
}

impl System {
    /// The one that the arguments name.
    pub(crate) fn of(args: &SystemArgs) -> Result<Self, HomeError> {
        if let (Some(database_url), Some(zookeeper)) = (&args.database_url, &args.zookeeper) {
            let (database_url, zookeeper) = (database_url.clone(), zookeeper.clone());
            return Ok(Self { database_url, zookeeper, guarded: Guarded::Unknown });
        }
        let status = running(args.run_dir.as_deref())?;
        // All replicas have one mode and one writer.
        let guarded = status.services.first().map(|service| Guarded::of(&service.mode, &service.writer));
        let guarded = guarded.unwrap_or_default();
        Ok(Self { database_url: status.postgres.url, zookeeper: status.zookeeper.connect, guarded })
    }

    /// One connection to its database.
    pub(crate) async fn database(&self) -> anyhow::Result<PgPool> {
        let options = PgConnectOptions::from_str(&self.database_url)?.application_name("lockstock");
        let cannot = || format!("cannot use the database at {}:{}", options.get_host(), options.get_port());
        // A pool would try for half a minute and then say only that.
        options.connect().await.with_context(cannot)?.close().await?;
        Ok(PgPoolOptions::new().max_connections(1).connect_with(options).await?)
    }
}

/// The running stack.
pub(crate) fn running(run_dir: Option<&Path>) -> Result<Status, HomeError> {
    Home::find(run_dir)?.running()?.status()
}
