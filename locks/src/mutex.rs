//! Exclusive locks, as their users see them.
//!
//! Promises, for every recipe alike: one absolute deadline; exactly *held with a node* or *an error and no
//! node*; nothing left behind by a dropped future.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use crate::acquire::Contender;
use crate::error::{AcquireError, PathError};
use crate::guard::Guard;
use crate::path;
use crate::recipe::Recipe;
use crate::session::Session;

/// How a lock is to be acquired.
#[derive(Debug, Clone)]
pub struct Acquire {
    deadline: Instant,
    pub(crate) traceparent: Option<String>,
    pub(crate) label: Option<String>,
}

impl Acquire {
    /// Waits until `deadline` at most.
    pub const fn until(deadline: Instant) -> Self {
        Self { deadline, traceparent: None, label: None }
    }

    /// Waits for `span` at most, from now.
    pub fn within(span: Duration) -> Self {
        // Beyond a year is as good as for ever, and no clock overflows.
        Self::until(Instant::now() + span.min(Duration::from_hours(24 * 365)))
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
}

/// An exclusive lock at a path. Cheap to make and to clone; there is no state but the path.
#[derive(Clone, Debug)]
pub struct Mutex {
    session: Session,
    recipe: Recipe,
    path: String,
}

impl Mutex {
    pub(crate) fn new(session: Session, recipe: Recipe, lock_path: &str) -> Result<Self, PathError> {
        path::validate(lock_path)?;
        Ok(Self { session, recipe, path: lock_path.to_owned() })
    }

    /// Path of the lock, without the chroot.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The recipe it follows.
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for the lock.
    ///
    /// Makes a node under [`Mutex::path`] (see [`Recipe`] for its shape), whose data is
    /// [`NodeData`](crate::NodeData) as JSON, and waits until nobody is ahead. Directories that are missing are
    /// made as containers, which the server removes when they are idle. Not reentrant: a second call by the
    /// same task waits for the first.
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
    /// Uncontended `fair`: a create and a listing, which leave together, and the read that sets a watch on the
    /// own node. Each wait adds one read with a watch, and a listing unless the one ahead was the holder.
    ///
    /// # Source
    /// ZooKeeper's lock recipe; Curator's `InterProcessMutex` has the same layout and may share the path.
    pub async fn acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        self.contend(request, true).await
    }

    /// Acquires the lock if nobody holds it or waits for it.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if somebody does, with the own node gone already; else as [`Mutex::acquire`],
    /// whose deadline bounds this call too while the ensemble is away.
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    ///
    /// # Cost
    /// As an uncontended [`Mutex::acquire`], and a delete if it is busy.
    pub async fn try_acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        self.contend(request, false).await
    }

    async fn contend(&self, request: Acquire, patient: bool) -> Result<Guard, AcquireError> {
        let span = tracing::info_span!(
            "lock.acquire",
            lock.path = %self.path,
            lock.recipe = %self.recipe,
            lock.node = tracing::field::Empty,
            lock.position = tracing::field::Empty,
            lock.blocker = tracing::field::Empty,
            lock.wait_ms = tracing::field::Empty,
            lock.token = tracing::field::Empty,
            lock.outcome = tracing::field::Empty,
        );
        let mut told = Told { mutex: self, span: span.clone(), started: Instant::now(), done: false };
        let result = async {
            let deadline = request.deadline;
            let mut contender = Contender::new(self, request, patient);
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

/// Tells the span and the observer how an acquire ended, a dropped one too.
struct Told<'m> {
    mutex: &'m Mutex,
    span: tracing::Span,
    started: Instant,
    done: bool,
}

impl Told<'_> {
    fn tell(&mut self, result: &Result<Guard, AcquireError>) {
        self.done = true;
        let observer = &self.mutex.session.config().observer;
        let waited = self.started.elapsed();
        self.span.record("lock.wait_ms", waited.as_secs_f64() * 1e3);
        match result {
            Ok(guard) => {
                self.span.record("lock.outcome", "acquired");
                self.span.record("lock.node", guard.node());
                self.span.record("lock.token", guard.token());
                self.span.record("lock.position", guard.position());
                observer.acquired(&self.mutex.path, self.mutex.recipe, waited);
            }
            Err(error) => {
                self.span.record("lock.outcome", error.as_str());
                observer.failed(&self.mutex.path, self.mutex.recipe, error);
            }
        }
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.span.record("lock.wait_ms", self.started.elapsed().as_secs_f64() * 1e3);
            self.span.record("lock.outcome", "cancelled");
        }
    }
}
