//! Notices children that died without being told to.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Exit;

/// A child that died unasked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{name} (process {pid}) died unasked with {exit}; the end of its log:\n{log_tail}")]
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
#[derive(Debug, Clone)]
pub struct Watchdog {
    deaths: Arc<watch::Sender<Vec<Death>>>,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self { deaths: Arc::new(watch::Sender::new(Vec::new())) }
    }

    pub(crate) fn report(&self, death: Death) {
        self.deaths.send_modify(|deaths| deaths.push(death));
    }

    /// The first unexpected death of the run; waits until there is one.
    ///
    /// Cancel safe.
    pub async fn first_death(&self) -> Death {
        let mut deaths = self.deaths.subscribe();
        loop {
            if let Some(death) = deaths.borrow_and_update().first() {
                return death.clone();
            }
            // `self` keeps the sender, so this only ends with a change.
            if deaths.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// All unexpected deaths so far, oldest first.
    pub fn deaths(&self) -> Vec<Death> {
        self.deaths.borrow().clone()
    }
}
