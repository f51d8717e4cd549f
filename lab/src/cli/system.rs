//! Which system a command looks at: the one that `up` left running, or one whose addresses are given.

use std::path::Path;

use lab::supervisor::{Home, HomeError};

/// Addresses of a running system.
pub(crate) struct System {
    pub(crate) database_url: String,
    pub(crate) zookeeper: String,
}

/// The running stack.
pub(crate) fn running(run_dir: Option<&Path>) -> Result<System, HomeError> {
    let status = Home::find(run_dir)?.running()?.status()?;
    Ok(System { database_url: status.postgres.url, zookeeper: status.zookeeper.connect })
}
