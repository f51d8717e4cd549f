//! Why a request was not served, and what that says about its outcome.

use serde_json::Value;
use zk_locks::Lost;

use crate::{
    domain::Sku,
    lockers::LockError,
    problem::{Problem, Standing},
    store::{StoreError, WriteError},
};

/// A request that was not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No lock was had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The lock was lost while it was held; nothing was written.
    #[error("the lock on {sku} was lost during the work")]
    LockLost {
        /// Which SKU.
        sku: Sku,
        /// How.
        reason: Lost,
    },
    /// The row had seen a later token.
    #[error("token {token} for {sku} was beaten by token {fence}: a later holder of the lock has written")]
    FencedOut {
        /// Which SKU.
        sku: Sku,
        /// The token that was refused.
        token: i64,
        /// The token the row had seen.
        fence: i64,
    },
    /// Something needed is not there.
    #[error("{reason}")]
    Unavailable {
        /// What.
        reason: String,
    },
    /// This request changed nothing; what an earlier one for the same change came to could not be looked up.
    #[error("{0}; whether an earlier request has made the change was not looked up")]
    Unsettled(Box<Self>),
    /// Clients that left have their work done first.
    #[error(
        "this replica works for as many requests as it may, some of which were given up by their clients"
    )]
    Overloaded,
    /// Time ran out before anything was decided.
    #[error("the deadline passed before anything was decided")]
    Deadline,
    /// A commit was sent and its outcome could not be found out.
    #[error("the outcome of the commit could not be found out in time")]
    Unknown,
    /// The key belongs to another request.
    #[error("the key was used for another request")]
    KeyConflict,
    /// There is no such order.
    #[error("there is no such order")]
    UnknownOrder,
    /// A bug; logged where it was found.
    #[error("a bug")]
    Bug(Standing),
}

impl Failure {
    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }

    /// Nobody has looked for an earlier request: its change may have been made.
    pub(super) fn unsettled(self) -> Self {
        match self {
            // What was asked for cannot have been done by anybody.
            Self::KeyConflict | Self::UnknownOrder => self,
            _ if self.standing() == Standing::Unknown => self,
            _ => Self::Unsettled(Box::new(self)),
        }
    }

    /// What became of the change that was asked for.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Unsettled(_) | Self::Unknown => Standing::Unknown,
            Self::Bug(standing) => *standing,
            _ => Standing::NotPlaced,
        }
    }

    /// Whether something went wrong, rather than the request being refused for what it asks.
    pub(super) fn is_error(&self) -> bool {
        !matches!(self, Self::KeyConflict | Self::UnknownOrder)
    }

    /// The error reply, without what became of the change.
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(self.code(), self.detail());
        match self.cause() {
            Self::Lock(LockError::Timeout { sku, position }) => {
                problem.with("sku", sku.as_str()).with("position", position.map_or(Value::Null, Value::from))
            }
            Self::LockLost { sku, reason } => {
                problem.with("sku", sku.as_str()).with("reason", reason.as_str())
            }
            Self::FencedOut { sku, token, fence } => {
                problem.with("sku", sku.as_str()).with("token", *token).with("fence", *fence)
            }
            Self::KeyConflict => problem.with("field", "Idempotency-Key"),
            _ => problem,
        }
    }

    fn cause(&self) -> &Self {
        match self {
            Self::Unsettled(cause) => cause.cause(),
            cause => cause,
        }
    }

    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsettled(cause) => cause.code(),
            Self::Lock(LockError::Timeout { .. }) => "lock-timeout",
            Self::Lock(LockError::Lost { .. }) | Self::LockLost { .. } => "lock-lost",
            Self::FencedOut { .. } => "fenced-out",
            Self::Lock(_) | Self::Unavailable { .. } | Self::Unknown => "unavailable",
            Self::Overloaded => "overloaded",
            Self::Deadline => "deadline-exceeded",
            Self::KeyConflict => "idempotency-conflict",
            Self::UnknownOrder => "unknown-order",
            Self::Bug(_) => "internal",
        }
    }

    fn detail(&self) -> String {
        match self.cause() {
            Self::Bug(_) => "The cause was logged with this trace id.".to_owned(),
            _ => self.to_string(),
        }
    }
}

impl From<StoreError> for Failure {
    /// Only for errors before a commit: nothing was written.
    fn from(error: StoreError) -> Self {
        match error {
            // What the server said stays in the log: it may name hosts and users.
            StoreError::Unavailable { operation, reason } => {
                tracing::warn!(operation, reason, "the database is not available");
                Self::unavailable(format!("the database could not {operation}"))
            }
            bug @ StoreError::Bug { .. } => {
                log_bug(&bug);
                Self::Bug(Standing::NotPlaced)
            }
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::FencedOut { sku, token, fence } => Self::FencedOut { sku, token, fence },
            WriteError::GivenUp => Self::Deadline,
            WriteError::Unknown => Self::Unknown,
            WriteError::Store(error) => error.into(),
        }
    }
}

/// Logs a bug once, with the trace id that the reply shows.
pub(super) fn log_bug(error: &dyn std::error::Error) {
    let causes: Vec<String> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    tracing::error!(trace_id = crate::telemetry::trace_id(), error = causes.join(": "), "a bug");
}
