//! A private PostgreSQL: its own cluster, a random password, one loopback port, full durability.
//!
//! Promised: after `stop`, and before `start_again` starts, no process of the former server is left, also when it
//! was killed. Not promised: a Unix socket (there is none; a run folder's path may be too long for one).

mod cluster;
mod leftovers;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{AskError, Child, RunDir, StartError, child::TAIL_LINES, postgres::cluster::Cluster, start};

/// Recovery after a kill reads what the last seconds wrote; the rest is a noisy machine.
const READY: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(25);
const CONNECT: Duration = Duration::from_secs(5);
/// A fast shutdown writes a checkpoint.
const FAST: Duration = Duration::from_secs(8);
/// An immediate one writes nothing; the server itself kills its backends after 5 s.
const IMMEDIATE: Duration = Duration::from_secs(6);
const GONE: Duration = Duration::from_secs(5);

/// A private PostgreSQL on a free loopback port. Dropping it stops it.
#[derive(Debug)]
pub struct Postgres {
    cluster: Cluster,
    child: Mutex<Child>,
}

impl Postgres {
    /// initdb and start; returns once it answers.
    pub async fn start(dir: &RunDir) -> Result<Self, StartError> {
        let cluster = Cluster::create(dir.place()).await?;
        let child = cluster.spawn()?;
        let postgres = Self { cluster, child: Mutex::new(child) };
        postgres.until_ready().await?;
        Ok(postgres)
    }

    /// The URL of a database of it, user and password included.
    pub fn url(&self, database: &str) -> String {
        let Cluster { port, password, .. } = &self.cluster;
        format!("postgres://{}:{password}@127.0.0.1:{port}/{database}", cluster::USER)
    }

    /// Makes a database and returns its URL. The name is a plain one: letters, digits, `_` and `-`.
    pub async fn create_database(&self, name: &str) -> Result<String, AskError> {
        let doing = format!("create database {name:?}");
        let failed = |source| AskError::Database { doing: doing.clone(), source };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(plain) {
            return Err(failed(sqlx::Error::InvalidArgument(
                "not a plain name of 1 to 63 characters".into(),
            )));
        }
        let mut connection = self.connect("postgres").await.map_err(failed)?;
        let statement = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
        sqlx::raw_sql(statement).execute(&mut connection).await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        Ok(self.url(name))
    }

    /// The server process (the postmaster) of the last start.
    pub fn child(&self) -> Child {
        self.current().clone()
    }

    /// Fast shutdown, bounded; returns once no process of it is left.
    pub async fn stop(&self) {
        let child = self.child();
        child.end_with(Signal::SIGINT);
        child.resume();
        if child.wait_exit(FAST).await.is_none() {
            child.end_with(Signal::SIGQUIT);
            if child.wait_exit(IMMEDIATE).await.is_none() {
                child.stop(Duration::ZERO).await;
            }
        }
        self.until_no_process_is_left().await;
    }

    /// SIGKILL to all of it at once, as when the machine crashes; returns once no process of it is left.
    pub async fn kill(&self) {
        let child = self.child();
        child.kill();
        child.wait_exit(GONE).await;
        self.until_no_process_is_left().await;
    }

    /// Starts it again on the same port and data, after a stop or a death.
    pub async fn start_again(&self) -> Result<(), StartError> {
        // Should somebody else have killed it: backends hold its shared memory, and a new server refuses to start.
        self.until_no_process_is_left().await;
        *self.current() = self.cluster.spawn()?;
        self.until_ready().await
    }

    fn current(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self, database: &str) -> Result<PgConnection, sqlx::Error> {
        let options = self.url(database).parse::<PgConnectOptions>()?.disable_statement_logging();
        let connect = PgConnection::connect_with(&options);
        tokio::time::timeout(CONNECT, connect).await.map_err(|_| sqlx::Error::PoolTimedOut)?
    }

    async fn until_ready(&self) -> Result<(), StartError> {
        start::until_ready(&self.child(), READY, POLL, async || {
            let connection = self.connect("postgres").await.map_err(|error| error.to_string())?;
            connection.close().await.map_err(|error| error.to_string())
        })
        .await
    }

    /// Backends do not end with a killed postmaster: one that computes goes on, and commits.
    async fn until_no_process_is_left(&self) {
        let begun = Instant::now();
        while leftovers::kill(&self.cluster.name) && begun.elapsed() < GONE {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let child = self.child();
        for (signal, patience) in
            [(Signal::SIGINT, FAST), (Signal::SIGQUIT, IMMEDIATE), (Signal::SIGKILL, GONE)]
        {
            child.end_with(signal);
            child.resume();
            if child.wait_exit_blocking(Instant::now() + patience).is_some() {
                break;
            }
        }
        leftovers::kill(&self.cluster.name);
    }
}

/// Why initdb failed, if it did.
async fn finished(initdb: &Child, patience: Duration) -> Result<(), StartError> {
    let name = initdb.name().to_owned();
    match initdb.wait_exit(patience).await {
        Some(exit) if exit.success() => Ok(()),
        Some(exit) => Err(StartError::Exited { name, exit, log_tail: initdb.log_tail(TAIL_LINES) }),
        None => Err(StartError::NotReady {
            name,
            waited: patience,
            last: "still running".into(),
            log_tail: initdb.log_tail(TAIL_LINES),
        }),
    }
}
