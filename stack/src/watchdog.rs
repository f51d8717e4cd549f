//! Notices children that died without being told to.

use crate::Exit;

/// A child that died unasked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{name} died unasked with {exit}; the end of its log:\n{log_tail}")]
pub struct Death {
    /// The child's name in the run, such as `zookeeper-1`.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// How it ended.
    pub exit: Exit,
    /// The end of its log.
    pub log_tail: String,
}

/// The register of unexpected deaths of one run. Cheap to clone; clones share the register.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {}

impl Watchdog {
    /// The first unexpected death of the run; waits until there is one.
    ///
    /// Cancel safe.
    pub async fn first_death(&self) -> Death {
        todo!()
    }

    /// All unexpected deaths so far, oldest first.
    pub fn deaths(&self) -> Vec<Death> {
        todo!()
    }
}
