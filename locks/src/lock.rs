//! A lock at a path, as its users see it.
//!
//! Promises, for every recipe alike: one absolute deadline; exactly *held with a node* or *an error and no
//! node*; nothing left behind by a dropped future.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tracing::{Instrument as _, Span};

use crate::acquire::Contender;
use crate::error::{AcquireError, OperationError, PathError};
use crate::guard::Guard;
use crate::node::Revocation;
use crate::observer::Attempt;
use crate::owner::Owner;
use crate::path;
use crate::recipe::Role;
use crate::session::Session;
use crate::story;

/// How a lock is to be acquired.
#[derive(Debug, Clone)]
pub struct Acquire {
    asked: Instant,
    deadline: Instant,
    pub(crate) traceparent: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) owner: Option<Owner>,
}

impl Acquire {
    /// Waits until `deadline` at most.
    pub fn until(deadline: Instant) -> Self {
        Self { asked: Instant::now(), deadline, traceparent: None, label: None, owner: None }
    }

    /// Waits for `span` at most, from now.
    pub fn within(span: Duration) -> Self {
        // Beyond a year is as good as for ever, and no clock overflows.
        Self::until(Instant::now() + span.min(Duration::from_hours(24 * 365)))
    }

    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Time since the request was made.
    pub(crate) fn waited(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Puts a W3C `traceparent` into the node, so that whoever waits can link to the request that holds.
    #[must_use]
    pub fn with_traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Says in the node what the lock is for, for people who look.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Acquires on behalf of `owner`, who may hold the lock already: then no node is made, and the lock is held
    /// until as many guards are gone as were given. See [`Owner`].
    #[must_use]
    pub fn with_owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }
}

/// A lock at a path, made by [`Session::mutex`] or [`RwLock`](crate::RwLock). Cheap to make and to clone; its only
/// state is its path.
#[derive(Clone, Debug)]
pub struct Lock {
    session: Session,
    role: Role,
    path: String,
    back_off: Option<Duration>,
}

impl Lock {
    pub(crate) fn new(session: Session, role: Role, lock_path: &str) -> Result<Self, PathError> {
        path::validate(lock_path)?;
        Ok(Self { session, role, path: lock_path.to_owned(), back_off: None })
    }

    /// Makes a woken waiter of [`Recipe::Simple`](crate::Recipe::Simple) pause for a random time of up to `most`
    /// before it tries for the place again, so that the herd does not arrive at once. Other recipes have no herd
    /// that competes, and ignore it.
    #[must_use]
    pub fn with_back_off(mut self, most: Duration) -> Self {
        self.back_off = Some(most);
        self
    }

    /// Path of the lock, without the chroot.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it acquires: the label of its statistics and spans.
    pub fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn back_off(&self) -> Option<Duration> {
        self.back_off
    }

    /// Waits for the lock.
    ///
    /// Makes a node under [`Lock::path`] (see [`Recipe`](crate::Recipe) and [`RwRecipe`](crate::RwRecipe) for its
    /// shape), whose data is [`NodeData`](crate::NodeData) as JSON, and waits until nobody is in the way.
    /// Directories that are missing are made as containers, which the server removes when they are idle. Not
    /// reentrant without an [`Owner`]: a second call by the same task waits for the first.
    ///
    /// # Errors
    /// Each [`AcquireError`] means that the lock is not held and that no node stays: it is gone, or is removed in
    /// the background as soon as the connection allows, at the latest with the session. The deadline holds for
    /// the whole call, with the ensemble down or packets dropped.
    ///
    /// # Cancel safety
    /// Dropping the future at any await leaves nothing behind: the node is removed in the background.
    ///
    /// # On session loss
    /// While waiting: [`AcquireError::SessionLost`]; the place in the queue is gone with the session. While
    /// held: see [`Guard::lost`]. A lost connection alone ends neither: the wait goes on after the reconnect.
    ///
    /// # Cost
    /// Uncontended: a create and a listing, which leave together, and the read that sets a watch on the own
    /// node. Each wait adds one read with a watch, and a listing unless the one ahead was the holder (`fair`).
    ///
    /// # Source
    /// ZooKeeper's lock recipes; Curator's `InterProcessMutex` and `InterProcessReadWriteLock` have the layout of
    /// the fair ones and may share the path.
    pub async fn acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        self.contend(request, true).await
    }

    /// Acquires the lock if nobody is in the way.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if somebody is, with the own node gone already; else as [`Lock::acquire`], whose
    /// deadline bounds this call too while the ensemble is away.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    ///
    /// # Cost
    /// As an uncontended [`Lock::acquire`], and a delete if it is busy.
    pub async fn try_acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        self.contend(request, false).await
    }

    /// Asks whoever holds the lock now to let go; true if there was somebody to ask. A holder of this library
    /// hears it in [`Guard::revoked`], one of Curator's in its `RevocationListener`. Nothing forces it.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// The holder may or may not have been asked.
    ///
    /// # Cost
    /// One listing, one read and one write.
    pub async fn revoke(&self, asked: &Revocation) -> Result<bool, OperationError> {
        self.session.inspector()?.revoke_holder(&self.path, asked).await
    }

    async fn contend(&self, request: Acquire, patient: bool) -> Result<Guard, AcquireError> {
        let caller = Span::current();
        let span = story::acquiring(&self.path, self.role);
        let attempt = Attempt::new(&self.path, self.role);
        self.session.config().observer.started(&attempt);
        let mut told = Told { lock: self, attempt: &attempt, span: span.clone(), done: false };
        let result = async {
            if let Some(again) = self.session.owners().enter(&request, self) {
                return again;
            }
            let deadline = request.deadline;
            let mut contender = Contender::new(self, &attempt, request, patient, caller);
            match timeout_at(deadline, contender.run()).await {
                Ok(result) => result,
                Err(_) => Err(contender.timed_out()),
            }
        }
        .instrument(span)
        .await;
        told.tell(&result);
        result
    }
}

/// Tells the span and the observer how an attempt ended, a dropped one too.
struct Told<'l> {
    lock: &'l Lock,
    attempt: &'l Attempt,
    span: Span,
    done: bool,
}

impl Told<'_> {
    fn tell(&mut self, result: &Result<Guard, AcquireError>) {
        self.done = true;
        let (observer, attempt) = (&self.lock.session.config().observer, self.attempt);
        self.span.in_scope(|| match result {
            Ok(guard) => {
                story::acquired(guard, attempt.waited());
                observer.acquired(attempt);
            }
            Err(error) => {
                story::failed(error, attempt.waited());
                observer.failed(attempt, error);
            }
        });
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.span.in_scope(|| {
                story::cancelled(self.attempt.waited());
                self.lock.session.config().observer.cancelled(self.attempt);
            });
        }
    }
}
