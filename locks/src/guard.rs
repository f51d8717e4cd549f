//! The guard of a held lock: token, loss signal, release.
//!
//! Promises that it never says *held* without proof. What it cannot promise, and no distributed lock can, is
//! that the holder notices a loss before it acts: that is what the token is for.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use time::OffsetDateTime;

use crate::error::{Lost, ReleaseError};
use crate::node::Revocation;
use crate::owner::Remembered;
use crate::recipe::Role;
use crate::session::Session;
use crate::session::epoch::Epoch;
use crate::stake::{Shared, Stake};

/// How the lock was come by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) position: usize,
    pub(crate) waited: Duration,
    pub(crate) acquired_at: OffsetDateTime,
}

/// What the guards of one owner share.
pub(crate) struct Holding {
    // Before the session: the stake must leave while its session is still open.
    pub(crate) stake: Stake,
    wait: Wait,
    // Keeps the session open for as long as a lock is held.
    pub(crate) session: Session,
    remembered: OnceLock<Remembered>,
}

impl Holding {
    pub(crate) fn shared(&self) -> &Shared {
        self.stake.shared()
    }

    pub(crate) fn wait(&self) -> Wait {
        self.wait
    }

    /// Resolves when the session that holds is over. Cancel safe.
    pub(crate) async fn session_end(&self) -> Lost {
        self.shared().epoch.end().await
    }

    pub(crate) fn remembered(&self, remembered: Remembered) {
        // Once: a holding has one owner.
        drop(self.remembered.set(remembered));
    }
}

/// A held lock. Dropping it releases the lock in the background; [`Guard::release`] awaits and reports.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    holding: Arc<Holding>,
}

impl Guard {
    pub(crate) fn new(session: Session, stake: Stake, wait: Wait) -> Self {
        Self { holding: Arc::new(Holding { stake, wait, session, remembered: OnceLock::new() }) }
    }

    /// One more guard on what its owner holds already.
    pub(crate) fn again(holding: Arc<Holding>) -> Self {
        Self { holding }
    }

    pub(crate) fn holding(&self) -> &Arc<Holding> {
        &self.holding
    }

    /// The holding, if no other guard of the same owner shares it.
    pub(crate) fn into_holding(self) -> Option<Holding> {
        Arc::into_inner(self.holding)
    }

    fn shared(&self) -> &Shared {
        self.holding.shared()
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.shared().epoch
    }

    /// The fencing token: the transaction id that created this holder's node.
    ///
    /// Positive, and higher than that of every earlier holder of this lock, for as long as the ensemble keeps
    /// its data. Give it to the resource with every write, and let the resource refuse a lower one than it
    /// has seen. Readers that hold together have different tokens in the order of their arrival.
    pub fn token(&self) -> i64 {
        self.shared().node().czxid
    }

    /// Path of the lock, without the chroot.
    pub fn path(&self) -> &str {
        &self.shared().claim.path
    }

    /// What is held.
    pub fn role(&self) -> Role {
        self.shared().claim.role
    }

    /// Full path of the holder's node, the chroot included.
    pub fn node(&self) -> String {
        self.shared().node_path()
    }

    /// Id of the ZooKeeper session that holds.
    pub fn session_id(&self) -> i64 {
        self.shared().epoch.info.id
    }

    /// How many were in the way when the queue was joined; 0 means that the lock was free.
    pub fn position(&self) -> usize {
        self.holding.wait.position
    }

    /// Time from the call to the lock.
    pub fn waited(&self) -> Duration {
        self.holding.wait.waited
    }

    /// For how long it has been held.
    pub fn held(&self) -> Duration {
        self.shared().held()
    }

    /// When it was acquired, by this process's wall clock.
    pub fn acquired_at(&self) -> OffsetDateTime {
        self.holding.wait.acquired_at
    }

    /// A look at whether the lock is still held: at the clock and at what the session knows, without I/O.
    ///
    /// `Ok` means that no other can hold it *now*; it says nothing of a moment later. Once it has said lost, it
    /// says so for ever.
    ///
    /// # Errors
    /// The reason why it is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.shared().check()
    }

    /// Resolves with the reason when the lock is lost, and not before.
    ///
    /// On the holder's clock it resolves before the server can have given the lock to another, as long as this
    /// task is scheduled: a process that is frozen learns of it when it wakes.
    ///
    /// # Cancel safety
    /// Cancel safe; can be called any number of times.
    pub async fn lost(&self) -> Lost {
        self.shared().lost().await
    }

    /// Resolves when somebody asks for the lock to be let go, with [`Lock::revoke`](crate::Lock::revoke) or with
    /// Curator's `Revoker`. The holder decides.
    ///
    /// # Cancel safety
    /// Cancel safe; can be called any number of times.
    pub async fn revoked(&self) -> Revocation {
        self.shared().revoked().await
    }

    /// Releases the lock and says how it went. Call it after the protected write has been acknowledged.
    ///
    /// A guard that shares its lock with another of the same [`Owner`](crate::Owner) only gives up its share.
    ///
    /// # Errors
    /// [`ReleaseError::Lost`] if it was lost before: others may have been inside. [`ReleaseError::Pending`] if
    /// the server has not answered for the length of the lease.
    ///
    /// # Cancel safety
    /// The release goes on in the background when the future is dropped.
    ///
    /// # Cost
    /// One delete.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let path = self.path().to_owned();
        let bound = self.shared().epoch.info.lease;
        let Some(Holding { stake, session, .. }) = self.into_holding() else { return Ok(()) };
        let settled = tokio::time::timeout(bound, stake.leave()).await;
        drop(session);
        match settled {
            Ok(Ok(result)) => result,
            // The task that removes the node is gone with its runtime, or is still at it.
            Ok(Err(_)) | Err(_) => Err(ReleaseError::Pending { path }),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("node", &self.node())
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}
