//! The locks of one request while they are held.
//!
//! Promises that they stay until `release` is called or the value is dropped; the caller calls it only after the reply to
//! its commit.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::{join_all, select_all};
use time::OffsetDateTime;
use zk_locks::{Guard, Lost, ReleaseError};

use super::RELEASE_WAIT;
use crate::{domain::Sku, telemetry::Metrics};

/// One held lock.
#[derive(Debug)]
pub struct Hold {
    /// What it guards.
    pub sku: Sku,
    pub(super) guard: Guard,
}

impl Hold {
    /// The fencing token.
    pub fn token(&self) -> i64 {
        self.guard.token()
    }

    /// Full path of the lock's node.
    pub fn node(&self) -> String {
        self.guard.node()
    }

    /// When it was acquired, by this machine's clock.
    pub fn acquired_at(&self) -> OffsetDateTime {
        self.guard.acquired_at()
    }

    /// Whether it still looks held; no I/O.
    pub fn check(&self) -> Result<(), Lost> {
        self.guard.check()
    }
}

/// All locks of one request; empty in mode `none`.
#[must_use = "the locks are released when this is dropped"]
#[derive(Debug)]
pub struct Held {
    holds: Vec<Hold>,
    waited: Duration,
    since: Instant,
}

impl Held {
    /// Mode `none`.
    pub(super) fn nothing() -> Self {
        Self { holds: Vec::new(), waited: Duration::ZERO, since: Instant::now() }
    }

    pub(super) fn new(holds: Vec<Hold>, waited: Duration) -> Self {
        Self { holds, waited, since: Instant::now() }
    }

    /// The lock on a SKU; `None` in mode `none`.
    pub fn on(&self, sku: &Sku) -> Option<&Hold> {
        self.holds.iter().find(|hold| hold.sku == *sku)
    }

    /// Token of the first SKU.
    pub fn token(&self) -> Option<i64> {
        self.holds.first().map(Hold::token)
    }

    /// How many were ahead at entry; the longest queue if there are several.
    pub fn position(&self) -> usize {
        self.holds.iter().map(|hold| hold.guard.position()).max().unwrap_or(0)
    }

    /// How long all locks together were waited for.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How long all of them have been held.
    pub fn held(&self) -> Duration {
        self.since.elapsed()
    }

    /// Resolves when one of the locks is lost, never before.
    pub async fn lost(&self) -> (&Sku, Lost) {
        if self.holds.is_empty() {
            return std::future::pending().await;
        }
        let all = self.holds.iter().map(|hold| Box::pin(async { (&hold.sku, hold.guard.lost().await) }));
        select_all(all).await.0
    }

    /// Gives the locks back, bounded; what is not confirmed by then goes on in the background.
    pub async fn release(self, metrics: &Arc<Metrics>) {
        let releases = join_all(self.holds.into_iter().map(|hold| hold.guard.release()));
        let Ok(results) = tokio::time::timeout(RELEASE_WAIT, releases).await else {
            metrics.release_pending();
            tracing::warn!("no reply to the release in time; the lock's node is removed in the background");
            return;
        };
        for error in results.into_iter().filter_map(Result::err) {
            // A lost lock was said to be lost where it was noticed; there is nothing left to release.
            if !matches!(error, ReleaseError::Lost { .. }) {
                metrics.release_pending();
                tracing::warn!(%error, "the lock's node is removed in the background");
            }
        }
    }
}
