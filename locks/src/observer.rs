//! The small interface through which a program hears of every lock event, to count and to link traces.
//!
//! Promises that `queued` runs inside the `lock.acquire` span of the waiter. The library itself speaks only
//! `tracing`; it knows no metrics library and no OpenTelemetry SDK.

use std::time::Duration;

use crate::error::{AcquireError, Lost, ReleaseError};
use crate::node::NodeData;
use crate::recipe::Recipe;
use crate::session::SessionState;

/// A waiter's place when it began to wait, or when the one before it changed.
#[derive(Clone, Debug)]
pub struct Queued {
    /// How many are ahead. For [`Recipe::Simple`], which has no queue, always 1: the holder.
    pub position: usize,
    /// Name of the node waited for.
    pub node: String,
    /// What that node says of its owner; `None` if another library wrote it.
    pub blocker: Option<NodeData>,
}

/// Hears of lock events. Calls come from the library's tasks: be quick, never block.
pub trait Observer: Send + Sync + 'static {
    /// A waiter is behind `wait.position` others.
    fn queued(&self, path: &str, recipe: Recipe, wait: &Queued) {
        let _ = (path, recipe, wait);
    }

    /// A lock was acquired.
    fn acquired(&self, path: &str, recipe: Recipe, waited: Duration) {
        let _ = (path, recipe, waited);
    }

    /// A lock was not acquired.
    fn failed(&self, path: &str, recipe: Recipe, error: &AcquireError) {
        let _ = (path, recipe, error);
    }

    /// A held lock was lost.
    fn lost(&self, path: &str, recipe: Recipe, reason: Lost) {
        let _ = (path, recipe, reason);
    }

    /// A lock was released after `held`, awaited or by drop.
    fn released(&self, path: &str, recipe: Recipe, held: Duration, result: Result<(), &ReleaseError>) {
        let _ = (path, recipe, held, result.is_ok());
    }

    /// The session changed its state.
    fn session(&self, state: &SessionState) {
        let _ = state;
    }
}

/// Hears nothing.
pub(crate) struct Silent;

impl Observer for Silent {}
