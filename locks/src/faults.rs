//! Fault injection: ends a session for real, at the server, as a partition or a long pause would.
//!
//! Promises that what follows is the true thing: the server deletes the nodes, and the library learns of it the
//! way it always does. Only with the feature `faults`.

use std::time::Duration;

use zookeeper_client as zk;

use crate::error::OperationError;
use crate::session::Session;

/// A takeover can lose the race with the victim's own reconnect.
const TRIES: u32 = 10;
const TRY_FOR: Duration = Duration::from_millis(500);

impl Session {
    /// Ends the current session at the server: a second connection takes it over and closes it. Returns its id
    /// once it is known to be over.
    ///
    /// # Errors
    /// [`OperationError`] if there is no session to end or no server to end it.
    ///
    /// # Cancel safety
    /// The session may or may not end.
    pub async fn expire(&self) -> Result<i64, OperationError> {
        let failed = |source| OperationError { operation: "expire", path: "/_sessions".to_owned(), source };
        let epoch = self.epoch_now().ok_or_else(|| failed(zk::Error::ConnectionLoss))?;
        let info = epoch.client().map_err(failed)?.session().clone();
        for _ in 0..TRIES {
            let connector = zk::Client::connector()
                .with_session(info.clone())
                .with_session_timeout(epoch.info.negotiated_timeout)
                .with_fail_eagerly();
            match connector.connect(&self.config().connect.hosts).await {
                // Dropping the second connection closes the session for both.
                Ok(takeover) => drop(takeover),
                Err(zk::Error::SessionExpired) => {}
                Err(error) => return Err(failed(error)),
            }
            if tokio::time::timeout(TRY_FOR, epoch.end()).await.is_ok() {
                return Ok(epoch.info.id);
            }
        }
        Err(failed(zk::Error::Timeout))
    }
}
