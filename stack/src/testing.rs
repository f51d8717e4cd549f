//! One PostgreSQL and one ensemble for all tests of a test binary.

use std::{sync::OnceLock, thread};

use uuid::Uuid;

use crate::{Postgres, RunDir, Stack, ZooKeeper, ZooKeeperConfig};

/// Servers that the tests of one binary share. Never stop, pause or cut them: a test that does starts its own.
#[derive(Debug)]
pub struct Shared {
    stack: Stack,
}

/// The servers of this test process, started on first use; they end with the process, and the folder goes too.
///
/// Nothing of them is tied to the runtime of the test that asked first.
///
/// # Panics
/// When they cannot be started, with the reason and how to install what is missing.
pub async fn shared() -> &'static Shared {
    static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
    // Blocks a thread that exists for blocking, so that a caller's timeout still works.
    let started = tokio::task::spawn_blocking(|| SHARED.get_or_init(start)).await;
    match started {
        Ok(Ok(shared)) => shared,
        Ok(Err(reason)) => panic!("the tests need PostgreSQL and ZooKeeper: {reason}"),
        Err(error) => panic!("the start of PostgreSQL and ZooKeeper did not end: {error}"),
    }
}

/// On a thread and a runtime of its own, so that it is nobody's.
fn start() -> Result<Shared, String> {
    let started = thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let dir = RunDir::disposable("test").map_err(|error| described(&error))?;
        let stack = runtime.block_on(Stack::start(dir, ZooKeeperConfig::default()));
        stack.map(|stack| Shared { stack }).map_err(|error| described(&error))
    });
    started.join().unwrap_or_else(|_| Err("the thread that starts them panicked".into()))
}

/// An error with its sources.
fn described(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Shared {
    /// The run folder, for fleets and logs of a test.
    pub fn dir(&self) -> &RunDir {
        self.stack.dir()
    }

    /// The database server.
    pub fn postgres(&self) -> &Postgres {
        self.stack.postgres()
    }

    /// The ensemble: three servers, tick 500 ms, sessions of 1 s and more.
    pub fn zookeeper(&self) -> &ZooKeeper {
        self.stack.zookeeper()
    }

    /// The URL of an empty database of its own.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn fresh_database(&self) -> String {
        let name = format!("t{}", Uuid::new_v4().simple());
        match self.postgres().create_database(&name).await {
            Ok(url) => url,
            Err(error) => panic!("{}", described(&error)),
        }
    }

    /// A connect string with a chroot of its own. The chroot node does not exist yet.
    pub fn fresh_chroot(&self) -> String {
        self.zookeeper().connect_string(&format!("/t{}", Uuid::new_v4().simple()))
    }
}
