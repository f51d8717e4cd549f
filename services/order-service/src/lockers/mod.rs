//! Who may enter: the modes as a table, and taking the locks of a request.
//!
//! Promises: all locks or none, in SKU order, by one deadline; the holds come back with token and node. Does not promise
//! that a lock is still held a moment later: that is for the fence to say.

mod held;
mod zookeeper;

use std::time::Duration;

use tokio::time::Instant;
use zk_locks::{Recipe, RwRecipe, Session};

pub use held::{Held, Hold};
pub use zk_locks::Access;

use crate::domain::Sku;

/// How a row is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Reads before the work, writes the number it computed. Loses updates when two holders overlap.
    Plain,
    /// Claims the row with its token in the statement that reads it.
    Fenced,
}

impl Writer {
    /// As configuration, replies and registration spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Fenced => "fenced",
        }
    }
}

/// A locker with the writers it goes with; the first is the default.
#[derive(Debug, PartialEq, Eq)]
pub struct Mode {
    /// As configuration, replies and registration spell it.
    pub name: &'static str,
    /// The lock; `None`: no lock is taken.
    pub lock: Option<Kind>,
    /// What may be combined with it.
    pub writers: &'static [Writer],
}

/// What kind of lock a mode takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Readers and writers alike have it alone.
    Mutex(Recipe),
    /// Readers share it.
    ReadWrite(RwRecipe),
}

const EITHER: &[Writer] = &[Writer::Fenced, Writer::Plain];

/// Every mode there is. A fence needs tokens, so `none` has no fenced writer.
pub const MODES: &[Mode] = &[
    Mode { name: "none", lock: None, writers: &[Writer::Plain] },
    Mode { name: "zk-simple", lock: Some(Kind::Mutex(Recipe::Simple)), writers: EITHER },
    Mode { name: "zk-fair", lock: Some(Kind::Mutex(Recipe::Fair)), writers: EITHER },
    Mode { name: "zk-rw-broadcast", lock: Some(Kind::ReadWrite(RwRecipe::Broadcast)), writers: EITHER },
    Mode { name: "zk-rw", lock: Some(Kind::ReadWrite(RwRecipe::Fair)), writers: EITHER },
];

/// The mode of that name.
pub fn mode(name: &str) -> Option<&'static Mode> {
    MODES.iter().find(|mode| mode.name == name)
}

/// What goes into the lock's node for others to read.
#[derive(Debug, Clone)]
pub struct Label {
    /// Lets a waiter link its span to ours.
    pub traceparent: Option<String>,
    /// What the lock is held for.
    pub text: String,
}

/// Why no lock is held. Nothing stays behind in any case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Others held it until the deadline.
    #[error("the lock on {sku} was not free before the deadline")]
    Timeout {
        /// The SKU that was waited for.
        sku: Sku,
        /// How many were ahead at last sight.
        position: Option<usize>,
    },
    /// ZooKeeper could not be reached before the deadline.
    #[error("zookeeper could not be reached before the deadline")]
    Unreachable,
    /// The queue place was lost and not won back before the deadline.
    #[error("the place in the queue for {sku} was lost and not won back before the deadline")]
    Lost {
        /// The SKU that was waited for.
        sku: Sku,
    },
    /// The process is shutting down.
    #[error("the lock session is closed")]
    Closed,
    /// ZooKeeper refuses the path.
    #[error("zookeeper refuses the lock on {sku}: {reason}")]
    Refused {
        /// The SKU.
        sku: Sku,
        /// What ZooKeeper said.
        reason: String,
    },
}

/// Takes locks according to the mode.
#[derive(Clone)]
pub struct Locker {
    mode: &'static Mode,
    session: Session,
}

impl Locker {
    /// A locker of that mode on that session.
    pub fn new(mode: &'static Mode, session: Session) -> Self {
        Self { mode, session }
    }

    /// Takes the locks of all SKUs, one after the other in the given (sorted) order. A mode whose lock readers do not
    /// share gives it to a reader alone.
    ///
    /// # Cancel safety
    /// Dropping the future gives every lock and queue place up, in the background.
    pub async fn acquire(
        &self,
        access: Access,
        skus: &[Sku],
        deadline: Instant,
        label: &Label,
    ) -> Result<Held, LockError> {
        match self.mode.lock {
            None => Ok(Held::nothing()),
            Some(kind) => zookeeper::acquire(&self.session, kind, access, skus, deadline, label).await,
        }
    }
}

/// How long a release is waited for before it is left to the background.
pub const RELEASE_WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modes_with_a_token_may_be_fenced() {
        for mode in MODES {
            assert_eq!(mode.writers.contains(&Writer::Fenced), mode.lock.is_some(), "{}", mode.name);
            assert_eq!(super::mode(mode.name), Some(mode));
        }
    }
}
