//! The small interface through which a program hears of every lock event, to count and to link traces.
//!
//! Promises that each attempt is told of once as started and once as acquired, failed or cancelled, that each
//! acquired lock is told of once as released, that `queued`, `acquired`, `failed` and `cancelled` run inside the
//! `lock.acquire` span of the waiter, and that `lost` runs inside the span that asked for the lock. That one stays open
//! as long as the lock is held.
//! The library itself speaks only `tracing`; it knows no metrics library and no OpenTelemetry SDK.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{AcquireError, Lost, ReleaseError};
use crate::node::NodeData;
use crate::recipe::Role;
use crate::session::SessionState;

/// One call of `acquire`.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Tells attempts of one process apart.
    pub id: u64,
    /// Path of the lock, without the chroot.
    pub path: String,
    /// What it acquires.
    pub role: Role,
    /// When it began.
    pub started: Instant,
}

impl Attempt {
    pub(crate) fn new(path: &str, role: Role) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        Self { id, path: path.to_owned(), role, started: Instant::now() }
    }

    /// For how long it has gone on.
    pub fn waited(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A waiter's place when it began to wait, or when the one before it changed.
#[derive(Clone, Debug)]
pub struct Queued {
    /// How many are in the way. For [`Recipe::Simple`](crate::Recipe::Simple), which has no queue, always 1: the
    /// holder.
    pub position: usize,
    /// Name of the nearest node in the way.
    pub node: String,
    /// The session that the node belongs to.
    pub session_id: i64,
    /// What that node says of its owner; `None` if another library wrote it.
    pub blocker: Option<NodeData>,
}

/// A lock that is held, or was until now.
#[derive(Clone, Copy, Debug)]
pub struct Held<'h> {
    /// Path of the lock, without the chroot.
    pub path: &'h str,
    /// What was acquired.
    pub role: Role,
    /// For how long.
    pub held: Duration,
}

/// Hears of lock events. Calls come from the library's tasks: be quick, never block.
pub trait Observer: Send + Sync + 'static {
    /// Somebody began to wait for a lock.
    fn started(&self, attempt: &Attempt) {
        let _ = attempt;
    }

    /// A waiter is behind `wait.position` others.
    fn queued(&self, attempt: &Attempt, wait: &Queued) {
        let _ = (attempt, wait);
    }

    /// A lock was acquired.
    fn acquired(&self, attempt: &Attempt) {
        let _ = attempt;
    }

    /// A lock was not acquired.
    fn failed(&self, attempt: &Attempt, error: &AcquireError) {
        let _ = (attempt, error);
    }

    /// Whoever waited was dropped.
    fn cancelled(&self, attempt: &Attempt) {
        let _ = attempt;
    }

    /// A held lock was lost. It is told of as released, too, when its guard goes.
    fn lost(&self, held: Held<'_>, reason: Lost) {
        let _ = (held, reason);
    }

    /// A guard is gone, awaited or dropped, and its node with it as far as `result` says.
    fn released(&self, held: Held<'_>, result: Result<(), &ReleaseError>) {
        let _ = (held, result.is_ok());
    }

    /// The session changed its state.
    fn session(&self, state: &SessionState) {
        let _ = state;
    }
}

/// Hears nothing.
pub(crate) struct Silent;

impl Observer for Silent {}
