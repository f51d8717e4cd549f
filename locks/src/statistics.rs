//! Statistics of everything a process acquires, per role and not per path, so that they never grow.
//!
//! Promises that what is still waiting counts, too: the longest wait includes those that have not ended. It is an
//! [`Observer`] like any other, for programs without a metrics library of their own and for tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{AcquireError, Lost, ReleaseError};
use crate::observer::{Attempt, Held, Observer};
use crate::recipe::Role;

/// Upper bounds of the histograms' buckets, in milliseconds; one more bucket takes the rest.
pub const BUCKETS_MS: [u64; 14] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/// Counts what happened: give it to [`SessionConfig::with_observer`](crate::SessionConfig::with_observer).
#[derive(Debug, Default)]
pub struct Statistics {
    roles: Mutex<HashMap<Role, Counters>>,
}

#[derive(Debug, Default)]
struct Counters {
    counts: RoleStatistics,
    waiting: HashMap<u64, Instant>,
}

/// The figures of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleStatistics {
    /// Locks acquired.
    pub acquired: u64,
    /// Attempts that failed, time-outs included.
    pub failed: u64,
    /// Attempts that failed at their deadline.
    pub timed_out: u64,
    /// Attempts whose future was dropped.
    pub cancelled: u64,
    /// Guards that are gone.
    pub released: u64,
    /// Of those, releases that did not report success.
    pub failed_releases: u64,
    /// Locks lost while they were held, by [`Lost::as_str`].
    pub lost: BTreeMap<&'static str, u64>,
    /// Attempts that wait now.
    pub waiting: u64,
    /// Locks held now, lost ones whose guard still lives included.
    pub held: u64,
    /// The longest wait that is still going on.
    pub longest_waiting: Duration,
    /// Waits that ended with a lock.
    pub waits: Histogram,
    /// Holds that ended.
    pub holds: Histogram,
}

/// Counts by duration; see [`BUCKETS_MS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Durations up to each bound and above the one before.
    pub buckets: [u64; BUCKETS_MS.len() + 1],
}

impl Histogram {
    fn count(&mut self, span: Duration) {
        let bucket = BUCKETS_MS.partition_point(|bound| Duration::from_millis(*bound) < span);
        self.buckets[bucket] += 1;
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Statistics {
    /// Statistics that have counted nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn roles(&self) -> MutexGuard<'_, HashMap<Role, Counters>> {
        self.roles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, role: Role, change: impl FnOnce(&mut Counters)) {
        change(self.roles().entry(role).or_default());
    }

    /// The figures of a role as they are now.
    pub fn of(&self, role: Role) -> RoleStatistics {
        let roles = self.roles();
        let Some(counters) = roles.get(&role) else { return RoleStatistics::default() };
        let longest = counters.waiting.values().map(Instant::elapsed).max().unwrap_or_default();
        RoleStatistics {
            waiting: counters.waiting.len() as u64,
            longest_waiting: longest,
            ..counters.counts.clone()
        }
    }
}

impl Observer for Statistics {
    fn started(&self, attempt: &Attempt) {
        self.with(attempt.role, |counters| {
            counters.waiting.insert(attempt.id, attempt.started);
        });
    }

    fn acquired(&self, attempt: &Attempt) {
        self.with(attempt.role, |counters| {
            counters.waiting.remove(&attempt.id);
            counters.counts.acquired += 1;
            counters.counts.held += 1;
            counters.counts.waits.count(attempt.waited());
        });
    }

    fn failed(&self, attempt: &Attempt, error: &AcquireError) {
        self.with(attempt.role, |counters| {
            counters.waiting.remove(&attempt.id);
            counters.counts.failed += 1;
            counters.counts.timed_out += u64::from(matches!(error, AcquireError::Timeout { .. }));
        });
    }

    fn cancelled(&self, attempt: &Attempt) {
        self.with(attempt.role, |counters| {
            counters.waiting.remove(&attempt.id);
            counters.counts.cancelled += 1;
        });
    }

    fn lost(&self, held: Held<'_>, reason: Lost) {
        self.with(held.role, |counters| *counters.counts.lost.entry(reason.as_str()).or_default() += 1);
    }

    fn released(&self, held: Held<'_>, result: Result<(), &ReleaseError>) {
        self.with(held.role, |counters| {
            counters.counts.released += 1;
            counters.counts.held = counters.counts.held.saturating_sub(1);
            counters.counts.failed_releases += u64::from(result.is_err());
            counters.counts.holds.count(held.held);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: Role = Role::Permit;

    #[test]
    fn those_who_still_wait_count() {
        let statistics = Statistics::new();
        let (first, second) = (Attempt::new("/a", ROLE), Attempt::new("/b", ROLE));
        statistics.started(&first);
        statistics.started(&second);
        assert_eq!(statistics.of(ROLE).waiting, 2);
        statistics.acquired(&first);
        let seen = statistics.of(ROLE);
        assert_eq!((seen.waiting, seen.held, seen.acquired, seen.waits.total()), (1, 1, 1, 1));
        assert!(seen.longest_waiting >= Duration::from_nanos(1));
        statistics.cancelled(&second);
        statistics.released(Held { path: "/a", role: ROLE, held: Duration::from_millis(7) }, Ok(()));
        let seen = statistics.of(ROLE);
        assert_eq!(
            (seen.waiting, seen.held, seen.cancelled, seen.longest_waiting),
            (0, 0, 1, Duration::ZERO)
        );
        assert_eq!(seen.holds.buckets[3], 1, "7 ms lie between 5 and 10");
    }

    #[test]
    fn a_duration_is_counted_under_its_bound() {
        let mut histogram = Histogram::default();
        for ms in [0, 1, 2, 30_000, 30_001] {
            histogram.count(Duration::from_millis(ms));
        }
        assert_eq!((histogram.buckets[0], histogram.buckets[1]), (2, 1));
        assert_eq!((histogram.buckets[13], histogram.buckets[14]), (1, 1));
    }
}
