//! What can go wrong with a statement. Either way nothing was written: an error of a commit is `settle`'s business.

use std::time::Duration;

/// A statement failed and the transaction it was part of, if any, is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot serve this now; the same request may work later.
    #[error("the database could not {operation}: {reason}")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// What came back.
        reason: String,
    },
    /// A mistake of ours.
    #[error("could not {operation}")]
    Bug {
        /// What was tried.
        operation: &'static str,
        /// What came back.
        source: sqlx::Error,
    },
}

impl StoreError {
    pub(super) fn from_sqlx(operation: &'static str, error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let passing = match &error {
            E::Io(_) | E::Tls(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed => true,
            E::Database(database) => database.code().is_some_and(|code| is_passing(&code)),
            _ => false,
        };
        if passing {
            Self::Unavailable { operation, reason: error.to_string() }
        } else {
            Self::Bug { operation, source: error }
        }
    }

    pub(super) fn timed_out(operation: &'static str) -> Self {
        Self::Unavailable { operation, reason: "no reply before the deadline".to_owned() }
    }
}

/// States of PostgreSQL in which the same statement may work a moment later (classes or codes of SQLSTATE).
const PASSING: &[&str] = &[
    "08",    // connection exceptions
    "28",    // wrong password: the operator's to mend, not the client's
    "3D000", // no such database yet
    "40",    // serialization failure, deadlock
    "53",    // out of connections, disk or memory
    "55P03", // lock_timeout
    "25P03", // idle_in_transaction_session_timeout
    "57",    // shut down, starting up, terminated, idle session timeout, statement timeout
    "58",    // I/O error of the server
];

fn is_passing(code: &str) -> bool {
    PASSING.iter().any(|prefix| code.starts_with(prefix))
}

/// How often a failed attempt of a background task is repeated: doubling from a quarter of a second to two.
pub(super) fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(250 << attempt.min(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_and_timeouts_of_the_server_pass_and_mistakes_do_not() {
        for code in ["57P01", "57P03", "57P05", "25P03", "55P03", "40001", "40P01", "53300", "08006"] {
            assert!(is_passing(code), "{code}");
        }
        for code in ["42601", "42P01", "23505", "23514", "22P02", "25001"] {
            assert!(!is_passing(code), "{code}");
        }
    }

    #[test]
    fn backoff_is_bounded() {
        assert_eq!(backoff(0), Duration::from_millis(250));
        assert_eq!(backoff(40), Duration::from_secs(2));
    }
}
