//! Which system a command looks at: the one that `up` left running, or one whose addresses are given.

use std::path::Path;
use std::str::FromStr as _;

use lab::experiments::UNLOCKED;
use lab::supervisor::{Home, HomeError};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use stack::Status;

use super::args::SystemArgs;

/// Addresses of a running system.
pub(crate) struct System {
    pub(crate) database_url: String,
    pub(crate) zookeeper: String,
    /// Whether its writes carry tokens, if that is known.
    pub(crate) tokens: bool,
}

impl System {
    /// The one that the arguments name.
    pub(crate) fn of(args: &SystemArgs) -> Result<Self, HomeError> {
        if let (Some(database_url), Some(zookeeper)) = (&args.database_url, &args.zookeeper) {
            let (database_url, zookeeper) = (database_url.clone(), zookeeper.clone());
            return Ok(Self { database_url, zookeeper, tokens: false });
        }
        let status = running(args.run_dir.as_deref())?;
        let tokens = status.services.iter().any(|service| service.mode != UNLOCKED);
        Ok(Self { database_url: status.postgres.url, zookeeper: status.zookeeper.connect, tokens })
    }

    /// One connection to its database.
    pub(crate) async fn database(&self) -> sqlx::Result<PgPool> {
        let options = PgConnectOptions::from_str(&self.database_url)?.application_name("lockstock");
        PgPoolOptions::new().max_connections(1).connect_with(options).await
    }
}

/// The running stack.
pub(crate) fn running(run_dir: Option<&Path>) -> Result<Status, HomeError> {
    Home::find(run_dir)?.running()?.status()
}
