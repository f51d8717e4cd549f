//! What can go wrong, one type per operation. Every error says whether its outcome is definite.
//!
//! An [`AcquireError`] always means *not held, and no node of ours stays*: what is unknown while it happens (a
//! create whose reply was lost) is resolved before or behind the error, never passed on to the caller.

use std::time::Duration;

use thiserror::Error;
use zookeeper_client as zk;

use crate::session::epoch::Failure;

/// A connect string that cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("bad ZooKeeper connect string {connect:?}: {reason}")]
pub struct ConfigError {
    /// The string as given.
    pub connect: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A path that cannot name a lock.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("bad lock path {path:?}: {reason}")]
pub struct PathError {
    /// The path as given.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// No session was established before the deadline.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("no ZooKeeper session before the deadline: {state}")]
pub struct NotConnected {
    /// What the session was doing instead.
    pub state: &'static str,
}

/// A single request to ZooKeeper that failed for a reason which retrying does not mend.
#[derive(Debug, Error, Clone)]
#[error("{operation} of {path} failed")]
pub struct OperationError {
    /// What was asked, for example `create`.
    pub operation: &'static str,
    /// The znode asked about.
    pub path: String,
    /// What the server or the connection answered.
    #[source]
    pub source: zk::Error,
}

/// Closing went on longer than it was given; the session ends at the server by its timeout at the latest.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("the ZooKeeper session did not close within {grace:?}")]
pub struct CloseError {
    /// The time it was given.
    pub grace: Duration,
}

/// Why a lock that was held is no longer held. A value, never a boolean that stays true.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lost {
    /// The server ended the session, and the lock's node with it.
    #[error("the ZooKeeper session expired")]
    SessionExpired,
    /// No write of this session was answered for the length of the lease: the server may have ended the
    /// session, so the lock must be taken for lost *before* it can have gone to another.
    #[error("the lease ran out without proof that the session lives")]
    LeaseRunOut,
    /// Somebody else, an operator perhaps, deleted the lock's node.
    #[error("the lock's node was deleted by another")]
    NodeDeleted,
    /// This process closed its own session.
    #[error("the ZooKeeper session was closed by its owner")]
    Closed,
}

impl Lost {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::SessionExpired, Self::LeaseRunOut, Self::NodeDeleted, Self::Closed];

    /// A stable name for labels and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionExpired => "session-expired",
            Self::LeaseRunOut => "lease-run-out",
            Self::NodeDeleted => "node-deleted",
            Self::Closed => "closed",
        }
    }
}

/// Why a lock was not acquired. *Definite*: it is not held, and its node is gone or is being removed in the
/// background for as long as the session lives.
#[derive(Debug, Error, Clone)]
#[non_exhaustive]
pub enum AcquireError {
    /// The deadline passed while waiting for a connection or in the queue.
    #[error("lock {path} not acquired within {waited:?}")]
    Timeout {
        /// Path of the lock.
        path: String,
        /// Time from the call to the deadline.
        waited: Duration,
        /// How many were ahead when last looked; `None` if the queue was never reached.
        position: Option<usize>,
    },
    /// `try_acquire` found it held or others waiting for it.
    #[error("lock {path} is held by another")]
    Busy {
        /// Path of the lock.
        path: String,
    },
    /// The session ended while waiting. The place in the queue is lost; asking again joins at its end.
    #[error("the ZooKeeper session ended while waiting for lock {path}: {reason}")]
    SessionLost {
        /// Path of the lock.
        path: String,
        /// How it ended.
        reason: Lost,
    },
    /// Somebody deleted this waiter's node.
    #[error("the node of a waiter for lock {path} was deleted by another")]
    NodeDeleted {
        /// Path of the lock.
        path: String,
    },
    /// The owner holds the lock for reading and asked for writing. Two readers that did so would wait for each
    /// other for ever: release first, then write.
    #[error(
        "owner reads lock {path} and may not wait to write it: two readers doing so would wait for each other"
    )]
    UpgradeRefused {
        /// Path of the lock.
        path: String,
    },
    /// The session was closed by its owner.
    #[error("lock {path} not acquired: the session is closed")]
    Closed {
        /// Path of the lock.
        path: String,
    },
    /// The server refused, for example for want of permission.
    #[error("lock {path} was refused")]
    Refused {
        /// Path of the lock.
        path: String,
        /// The request that was refused.
        #[source]
        source: OperationError,
    },
}

impl AcquireError {
    /// Whether asking again at once can succeed where this call failed for a reason that has passed.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::SessionLost { .. } | Self::NodeDeleted { .. })
    }

    /// What a failed request means for the acquire that sent it.
    pub(crate) fn of(failure: Failure, path: &str) -> Self {
        let path = path.to_owned();
        match failure {
            Failure::SessionOver(Lost::NodeDeleted) => Self::NodeDeleted { path },
            Failure::SessionOver(Lost::Closed) => Self::Closed { path },
            Failure::SessionOver(reason) => Self::SessionLost { path, reason },
            Failure::Refused(source) => Self::Refused {
                source: OperationError { operation: "acquire", path: path.clone(), source },
                path,
            },
        }
    }

    /// The same, said of the lock that this one is a part of.
    pub(crate) fn said_of(mut self, whole: &str) -> Self {
        let (Self::Timeout { path, .. }
        | Self::Busy { path }
        | Self::SessionLost { path, .. }
        | Self::NodeDeleted { path }
        | Self::UpgradeRefused { path }
        | Self::Closed { path }
        | Self::Refused { path, .. }) = &mut self;
        whole.clone_into(path);
        self
    }

    /// A stable name for labels and reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "timeout",
            Self::Busy { .. } => "busy",
            Self::SessionLost { .. } => "session-lost",
            Self::NodeDeleted { .. } => "node-deleted",
            Self::UpgradeRefused { .. } => "upgrade-refused",
            Self::Closed { .. } => "closed",
            Self::Refused { .. } => "refused",
        }
    }
}

/// Why a release could not report success.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock was not ours any more when it was released: others may have been inside meanwhile.
    #[error("lock {path} was lost before its release: {reason}")]
    Lost {
        /// Path of the lock.
        path: String,
        /// How it was lost.
        reason: Lost,
    },
    /// The server has not answered for the length of the lease. The removal goes on in the background; the lock
    /// is free when it is through, or when the session ends.
    #[error("release of lock {path} is still under way")]
    Pending {
        /// Path of the lock.
        path: String,
    },
    /// The server refuses to delete the node, for example for want of permission; it goes with the session.
    #[error("release of lock {path} was refused")]
    Refused {
        /// Path of the lock.
        path: String,
    },
}

/// Why a write lock did not become a read lock. *Definite*: nothing is held any more.
#[derive(Debug, Error, Clone)]
#[non_exhaustive]
pub enum DowngradeError {
    /// What is held is no write lock of a read/write lock.
    #[error("lock {path} is not held for writing")]
    NotAWriter {
        /// Path of the lock.
        path: String,
    },
    /// The owner holds it by another guard too, which still counts on writing.
    #[error("lock {path} is held for writing by another guard of the same owner")]
    Shared {
        /// Path of the lock.
        path: String,
    },
    /// The lock was lost before or meanwhile.
    #[error("lock {path} was lost: {reason}")]
    Lost {
        /// Path of the lock.
        path: String,
        /// How it was lost.
        reason: Lost,
    },
    /// The server refused.
    #[error("downgrade of lock {path} was refused")]
    Refused {
        /// Path of the lock.
        path: String,
        /// The request that was refused.
        #[source]
        source: OperationError,
    },
}

/// What an error of the client library says about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was not applied, and the answer is final.
    Definite,
    /// It may have been applied: the reply is missing.
    Unknown,
    /// The session has ended; its ephemeral nodes go with it.
    SessionOver,
}

pub(crate) const fn outcome(error: &zk::Error) -> Outcome {
    match error {
        zk::Error::SessionExpired | zk::Error::AuthFailed | zk::Error::ClientClosed => Outcome::SessionOver,
        // Lost replies come in three shapes (FIN, RST and silence); a moved session and a throttled request
        // are refused by the server, yet a later look is cheaper than trusting a list of names.
        zk::Error::ConnectionLoss
        | zk::Error::Timeout
        | zk::Error::SessionMoved
        | zk::Error::Throttled
        | zk::Error::UnexpectedError(_)
        | zk::Error::UnmarshalError { .. }
        | zk::Error::Custom(_) => Outcome::Unknown,
        _ => Outcome::Definite,
    }
}
