//! What a session needs to know. No environment, no files: the program that uses the library decides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::ConfigError;
use crate::observer::{Observer, Silent};
use crate::path::ConnectString;

/// Default of [`SessionConfig::with_session_timeout`].
pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// Settings of a [`Session`](crate::Session).
#[derive(Clone)]
pub struct SessionConfig {
    pub(crate) connect: ConnectString,
    pub(crate) session_timeout: Duration,
    pub(crate) instance: Option<String>,
    pub(crate) metadata: serde_json::Value,
    pub(crate) observer: Arc<dyn Observer>,
}

impl SessionConfig {
    /// Takes a connect string: `host:port`, several separated by commas, then an optional chroot, as in
    /// `zoo1:2181,zoo2:2181,zoo3:2181/lockstock`. The chroot is made when it does not exist.
    ///
    /// # Errors
    /// [`ConfigError`] names what is wrong with the string.
    pub fn new(connect: &str) -> Result<Self, ConfigError> {
        Ok(Self {
            connect: ConnectString::parse(connect)?,
            session_timeout: DEFAULT_SESSION_TIMEOUT,
            instance: None,
            metadata: serde_json::Value::Null,
            observer: Arc::new(Silent),
        })
    }

    /// Asks for a session timeout. The server clamps it to between 2 and 20 of its ticks; what counts is
    /// [`SessionInfo::negotiated_timeout`](crate::SessionInfo::negotiated_timeout).
    #[must_use]
    pub fn with_session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// Names this process in every node that it makes.
    #[must_use]
    pub fn with_instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Puts something into the session's own node for [`Session::members`](crate::Session::members) to read.
    #[must_use]
    pub fn with_metadata(mut self, metadata: serde_json::Value) -> Self {
        self.metadata = metadata;
        self
    }

    /// Tells `observer` of every lock event.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }
}

impl fmt::Debug for SessionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionConfig")
            .field("connect", &self.connect)
            .field("session_timeout", &self.session_timeout)
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}
