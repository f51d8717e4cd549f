//! A private PostgreSQL.

use crate::{AskError, Child, RunDir, StartError};

/// A private PostgreSQL on a free loopback port. Dropping it stops it.
#[derive(Debug)]
pub struct Postgres {}

impl Postgres {
    /// initdb and start; returns once it answers.
    pub async fn start(_dir: &RunDir) -> Result<Self, StartError> {
        todo!()
    }
    /// The URL of a database of it, user and password included.
    pub fn url(&self, _database: &str) -> String {
        todo!()
    }
    /// Makes a database and returns its URL.
    pub async fn create_database(&self, _name: &str) -> Result<String, AskError> {
        todo!()
    }
    /// The server process (the postmaster) of the last start.
    pub fn child(&self) -> Child {
        todo!()
    }
    /// Fast shutdown, bounded; returns once no process of it is left.
    pub async fn stop(&self) {
        todo!()
    }
    /// Starts it again on the same port and data, after a stop or a death.
    pub async fn start_again(&self) -> Result<(), StartError> {
        todo!()
    }
}
