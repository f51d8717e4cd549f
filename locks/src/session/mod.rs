//! Sessions: one per process, shared by all its locks, and rebuilt after its end.
//!
//! Promises that [`Session::start`] returns at once and heals by itself, whether the ensemble is there or not.
//! A rebuilt session is a new one: guards of the old one stay lost.

pub(crate) mod epoch;
mod keeper;
mod lease;
pub(crate) mod member;
mod supervisor;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use self::epoch::Epoch;
pub use self::member::Member;
use self::supervisor::{Published, Supervisor};
use crate::config::SessionConfig;
use crate::error::{CloseError, NotConnected, OperationError, PathError};
use crate::inspect::Inspector;
use crate::lock::Lock;
use crate::owner::Owners;
use crate::recipe::{Recipe, Role, RwRecipe};
use crate::rw::RwLock;
use crate::semaphore::Semaphore;

/// Facts of one ZooKeeper session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session, as ZooKeeper prints it in hexadecimal.
    pub id: i64,
    /// The timeout that the server granted: after this long without a sign of life it ends the session.
    pub negotiated_timeout: Duration,
    /// How long a lock counts as held after the sending of the last write that was answered.
    pub lease: Duration,
}

impl fmt::Display for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.id)
    }
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// There is no session; one is being established.
    Connecting,
    /// The session is established and its server answers.
    Connected(SessionInfo),
    /// The connection is away. Locks are held for as long as the lease lasts.
    Suspended(SessionInfo),
    /// The session ended, and every lock with it; the next one is on its way.
    Lost(SessionInfo),
    /// Closed by its owner. Final.
    Closed,
}

impl SessionState {
    /// Whether requests can be sent now.
    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected(_))
    }

    /// A stable name for labels and reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected(_) => "connected",
            Self::Suspended(_) => "suspended",
            Self::Lost(_) => "lost",
            Self::Closed => "closed",
        }
    }
}

/// A handle on the process's session. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    config: SessionConfig,
    owners: Arc<Owners>,
    published: Arc<Published>,
    closing: watch::Sender<Option<Duration>>,
    closed: watch::Sender<bool>,
}

impl Session {
    /// Starts a session and returns at once; it connects, and reconnects, in the background.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cost
    /// One connection, and one ephemeral node under `<chroot>/_sessions`. While anything waits or holds, one
    /// small write whenever no other write was answered for a sixth of the session timeout.
    pub fn start(config: SessionConfig) -> Self {
        let published = Arc::new(Published {
            state: watch::Sender::new(SessionState::Connecting),
            epoch: watch::Sender::new(None),
        });
        let closing = watch::Sender::new(None);
        let closed = watch::Sender::new(false);
        let supervisor = Supervisor {
            config: config.clone(),
            published: Arc::clone(&published),
            closing: closing.subscribe(),
            closed: closed.clone(),
        };
        tokio::spawn(supervisor.run());
        Self { inner: Arc::new(Inner { config, owners: Arc::default(), published, closing, closed }) }
    }

    /// What the session is doing now.
    pub fn state(&self) -> SessionState {
        self.inner.published.state.borrow().clone()
    }

    /// Follows the session's state. Quick changes may be seen as one.
    pub fn watch_state(&self) -> watch::Receiver<SessionState> {
        self.inner.published.state.subscribe()
    }

    /// Waits until the session is connected.
    ///
    /// # Errors
    /// [`NotConnected`] at the deadline, and at once if the session is closed.
    ///
    /// # Cancel safety
    /// Cancel safe: it only looks.
    pub async fn connected(&self, deadline: Instant) -> Result<SessionInfo, NotConnected> {
        let mut states = self.watch_state();
        let connected = states.wait_for(|state| state.is_connected() || *state == SessionState::Closed);
        match timeout_at(deadline, connected).await {
            Ok(Ok(state)) => match &*state {
                SessionState::Connected(info) => Ok(info.clone()),
                other => Err(NotConnected { state: other.as_str() }),
            },
            Ok(Err(_)) => Err(NotConnected { state: SessionState::Closed.as_str() }),
            Err(_) => Err(NotConnected { state: self.state().as_str() }),
        }
    }

    /// An exclusive lock at `path`, under the connect string's chroot. Makes no request.
    ///
    /// # Errors
    /// [`PathError`] if the server would refuse the path.
    pub fn mutex(&self, recipe: Recipe, path: &str) -> Result<Lock, PathError> {
        Lock::new(self.clone(), Role::Mutex(recipe), path)
    }

    /// A read/write lock at `path`, under the connect string's chroot. Makes no request.
    ///
    /// # Errors
    /// [`PathError`] if the server would refuse the path.
    pub fn rw_lock(&self, recipe: RwRecipe, path: &str) -> Result<RwLock, PathError> {
        RwLock::new(self, recipe, path)
    }

    /// A semaphore at `path` with `limit` permits, until [`Semaphore::set_limit`] says otherwise. Makes no request.
    ///
    /// # Errors
    /// [`PathError`] if the server would refuse the path.
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Semaphore, PathError> {
        Semaphore::new(self, path, limit)
    }

    /// Who else has a session on this ensemble and chroot through this library, oldest first.
    ///
    /// # Errors
    /// [`OperationError`] if there is no connection or a request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Cost
    /// One listing and one read for each member.
    pub async fn members(&self) -> Result<Vec<Member>, OperationError> {
        let failed = |source| OperationError { operation: "list", path: "/_sessions".to_owned(), source };
        let epoch = self.epoch_now().ok_or_else(|| failed(zookeeper_client::Error::ConnectionLoss))?;
        let client = epoch.client().map_err(failed)?;
        member::list(&client, &self.inner.config.connect, Some(epoch.info.id)).await
    }

    /// Closes the session: waits for nodes that are being removed, then ends it at the server, so that whatever
    /// this process still held is free at once. Guards that are left are [`Lost::Closed`](crate::Lost::Closed).
    ///
    /// # Errors
    /// [`CloseError`] if `grace` was too short, which it is while the ensemble is away; the server then ends
    /// the session by its timeout.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self, grace: Duration) -> Result<(), CloseError> {
        let mut closed = self.inner.closed.subscribe();
        self.inner.closing.send_if_modified(|closing| closing.replace(grace).is_none());
        // The supervisor keeps the grace; the little more is for its last step.
        let bound = grace + Duration::from_millis(100);
        match tokio::time::timeout(bound, closed.wait_for(|closed| *closed)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(CloseError { grace }),
        }
    }

    pub(crate) fn config(&self) -> &SessionConfig {
        &self.inner.config
    }

    pub(crate) fn owners(&self) -> &Arc<Owners> {
        &self.inner.owners
    }

    /// Looks, and asks, over this session's connection.
    ///
    /// # Errors
    /// [`OperationError`] if there is no session now.
    pub fn inspector(&self) -> Result<Inspector, OperationError> {
        let failed = |source| OperationError { operation: "inspect", path: "/".to_owned(), source };
        let epoch = self.epoch_now().ok_or_else(|| failed(zookeeper_client::Error::ConnectionLoss))?;
        Ok(Inspector::over(epoch.client().map_err(failed)?, self.inner.config.connect.clone()))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.inner.closing.borrow().is_some()
    }

    pub(crate) fn epoch_now(&self) -> Option<Arc<Epoch>> {
        self.inner.published.epoch.borrow().clone()
    }

    /// Waits for a session that is connected; `None` once the session is closed. Cancel safe.
    pub(crate) async fn epoch(&self) -> Option<Arc<Epoch>> {
        let mut epochs = self.inner.published.epoch.subscribe();
        let mut closed = self.inner.closed.subscribe();
        loop {
            let epoch = tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return None,
                epoch = epochs.wait_for(Option::is_some) => epoch.ok()?.clone()?,
            };
            if self.is_closing() {
                return None;
            }
            match epoch.connected().await {
                Ok(()) => return Some(epoch),
                Err(_) => epochs.changed().await.ok()?,
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("state", &self.state()).finish_non_exhaustive()
    }
}
