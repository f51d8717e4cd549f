//! Why a question to a running server got no answer.

use std::io;

/// A running server did not answer, or not as expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The connection failed, or the answer did not come in time.
    #[error("{server} did not answer {question:?}")]
    Unreachable {
        /// The server's name in the run, such as `zookeeper-1`.
        server: String,
        /// What was asked.
        question: String,
        /// The failure of the connection.
        #[source]
        source: io::Error,
    },
    /// It answered something else.
    #[error("{server} answered {question:?} with {answer:?}")]
    Unexpected {
        /// The server's name in the run.
        server: String,
        /// What was asked.
        question: String,
        /// The answer, shortened.
        answer: String,
    },
    /// PostgreSQL refused a statement.
    #[error("postgres: cannot {doing}")]
    Database {
        /// What was attempted.
        doing: String,
        /// What the driver says.
        #[source]
        source: sqlx::Error,
    },
}
