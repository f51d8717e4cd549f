//! One PostgreSQL and one ensemble for all tests of a test binary.

use crate::{Postgres, RunDir, ZooKeeper};

/// Servers that the tests of one binary share. Never stop, pause or cut them: a test that does starts its own.
#[derive(Debug)]
pub struct Shared {}

/// The servers of this test process, started on first use; they end with the process, and the folder goes too.
///
/// Nothing of them is tied to the runtime of the test that asked first.
///
/// # Panics
/// When they cannot be started, with the reason and how to install what is missing.
pub async fn shared() -> &'static Shared {
    todo!()
}

impl Shared {
    /// The run folder, for fleets and logs of a test.
    pub fn dir(&self) -> &RunDir {
        todo!()
    }
    /// The database server.
    pub fn postgres(&self) -> &Postgres {
        todo!()
    }
    /// The ensemble: three servers, tick 500 ms, sessions of 1 s and more.
    pub fn zookeeper(&self) -> &ZooKeeper {
        todo!()
    }
    /// The URL of an empty database of its own.
    pub async fn fresh_database(&self) -> String {
        todo!()
    }
    /// A connect string with a chroot of its own. The chroot node does not exist yet.
    pub fn fresh_chroot(&self) -> String {
        todo!()
    }
}
