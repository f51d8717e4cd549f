//! The service's metrics. Labels are modes, kinds and outcomes, never SKUs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};
use tokio::time::Instant;
use zk_locks::{Attempt, Held, Lost, Role, SessionState};

use super::names::{self, MetricName};

const WAIT_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
const HOLD_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const SESSION_STATES: [&str; 5] = ["connecting", "connected", "suspended", "lost", "closed"];

/// How requests of each operation end when nothing is wrong with the service,
const OUTCOMES: &[(&str, &[&str])] = &[
    ("order", &["accepted", "replayed", "out-of-stock", "unknown-sku", "idempotency-conflict"]),
    ("cancel", &["cancelled", "unknown-order", "stock-limit"]),
    ("restock", &["restocked", "replayed", "unknown-sku", "stock-limit", "idempotency-conflict"]),
    ("set", &["set"]),
];
/// and how any of them may end.
const FAILURES: [&str; 8] = [
    "lock-timeout",
    "lock-lost",
    "fenced-out",
    "deadline-exceeded",
    "unavailable",
    "overloaded",
    "internal",
    "client-gone",
];

/// Everything the service counts.
#[derive(Debug)]
pub struct Metrics {
    lock_wait: Histogram<f64>,
    lock_hold: Histogram<f64>,
    lock_lost: Counter<u64>,
    release_pending: Counter<u64>,
    fenced: Counter<u64>,
    requests: Counter<u64>,
    request_duration: Histogram<f64>,
    now: Arc<Now>,
}

/// What the gauges read.
#[derive(Debug, Default)]
struct Now {
    /// Attempts that wait, by their id.
    waits: Mutex<HashMap<u64, (Role, Instant)>>,
    held: Mutex<HashMap<Role, i64>>,
    session: AtomicU8,
}

/// What gauges of the rest of the service read, and its limits.
pub struct Sources {
    /// Requests in flight.
    pub in_flight: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Open connections, idle ones among them.
    pub connections: Box<dyn Fn() -> (u64, u64) + Send + Sync>,
    /// Limit of requests in flight.
    pub requests_max: u64,
    /// Limit of connections.
    pub db_connections_max: u64,
    /// Deadline of a request.
    pub lock_wait: Duration,
    /// Limit of a body.
    pub body_bytes_max: u64,
}

fn role_label(role: Role) -> KeyValue {
    KeyValue::new("recipe", role.as_str())
}

impl Metrics {
    /// Makes the instruments.
    pub fn new(meter: &Meter) -> Self {
        let counter = |name: MetricName| {
            meter.u64_counter(name.name).with_unit(name.unit).with_description(name.help).build()
        };
        let histogram = |name: MetricName, buckets: &[f64]| {
            let histogram = meter.f64_histogram(name.name).with_unit(name.unit).with_description(name.help);
            histogram.with_boundaries(buckets.to_vec()).build()
        };
        let metrics = Self {
            lock_wait: histogram(names::LOCK_WAIT, WAIT_BUCKETS),
            lock_hold: histogram(names::LOCK_HOLD, HOLD_BUCKETS),
            lock_lost: counter(names::LOCK_LOST),
            release_pending: counter(names::LOCK_RELEASE_PENDING),
            fenced: counter(names::FENCED),
            requests: counter(names::REQUESTS),
            request_duration: histogram(names::REQUEST_DURATION, WAIT_BUCKETS),
            now: Arc::default(),
        };
        metrics.observe_locks(meter);
        metrics.begin_at_zero();
        metrics
    }

    /// Every series whose labels are known exists before its first event, or a rate would not see that event.
    fn begin_at_zero(&self) {
        for role in Role::ALL {
            for reason in Lost::ALL {
                self.lock_lost.add(0, &[role_label(role), KeyValue::new("reason", reason.as_str())]);
            }
        }
        self.release_pending.add(0, &[]);
        for reason in [names::OVERTAKEN, names::TOKEN_BEHIND_FENCE] {
            self.fenced.add(0, &[KeyValue::new("reason", reason)]);
        }
        for (operation, outcomes) in OUTCOMES {
            for outcome in outcomes.iter().chain(&FAILURES) {
                let labels = [KeyValue::new("operation", *operation), KeyValue::new("outcome", *outcome)];
                self.requests.add(0, &labels);
            }
        }
    }

    fn observe_locks(&self, meter: &Meter) {
        let now = Arc::clone(&self.now);
        observable(meter, names::LOCK_WAITING, move |observe| {
            let waits = now.waits();
            for role in Role::ALL {
                let waiting = waits.values().filter(|(of, _)| *of == role).count();
                observe(waiting as f64, &[role_label(role)]);
            }
        });
        let now = Arc::clone(&self.now);
        observable(meter, names::LOCK_HELD, move |observe| {
            let held = now.held();
            for role in Role::ALL {
                observe(held.get(&role).copied().unwrap_or_default() as f64, &[role_label(role)]);
            }
        });
        let now = Arc::clone(&self.now);
        observable(meter, names::LOCK_WAIT_LONGEST, move |observe| {
            let longest = now.waits().values().map(|(_, since)| since.elapsed()).max();
            observe(longest.unwrap_or_default().as_secs_f64(), &[]);
        });
        let now = Arc::clone(&self.now);
        observable(meter, names::SESSION_STATE, move |observe| {
            let current = usize::from(now.session.load(Ordering::Relaxed));
            for (index, state) in SESSION_STATES.into_iter().enumerate() {
                observe(f64::from(u8::from(index == current)), &[KeyValue::new("state", state)]);
            }
        });
    }

    /// Adds the gauges that read the rest of the service.
    pub fn observe(&self, meter: &Meter, sources: Sources) {
        let Sources { in_flight, connections, .. } = sources;
        observable(meter, names::IN_FLIGHT, move |observe| observe(in_flight() as f64, &[]));
        observable(meter, names::POOL, move |observe| {
            let (open, idle) = connections();
            observe(idle as f64, &[KeyValue::new("state", "idle")]);
            observe(open.saturating_sub(idle) as f64, &[KeyValue::new("state", "used")]);
        });
        for (name, limit) in [
            (names::LIMIT_REQUESTS, sources.requests_max as f64),
            (names::LIMIT_CONNECTIONS, sources.db_connections_max as f64),
            (names::LIMIT_LOCK_WAIT, sources.lock_wait.as_secs_f64()),
            (names::LIMIT_BODY, sources.body_bytes_max as f64),
        ] {
            observable(meter, name, move |observe| observe(limit, &[]));
        }
    }

    pub(super) fn waits(&self, attempt: &Attempt) {
        self.now.waits().insert(attempt.id, (attempt.role, attempt.started));
    }

    /// A wait ended, with the lock if the outcome is `acquired`.
    pub(super) fn waited(&self, attempt: &Attempt, outcome: &'static str) {
        self.now.waits().remove(&attempt.id);
        let labels = [role_label(attempt.role), KeyValue::new("outcome", outcome)];
        self.lock_wait.record(attempt.waited().as_secs_f64(), &labels);
    }

    pub(super) fn holds(&self, role: Role) {
        *self.now.held().entry(role).or_default() += 1;
    }

    pub(super) fn held(&self, held: Held<'_>) {
        if let Some(count) = self.now.held().get_mut(&held.role) {
            *count -= 1;
        }
        self.lock_hold.record(held.held.as_secs_f64(), &[role_label(held.role)]);
    }

    pub(super) fn lost(&self, role: Role, reason: Lost) {
        self.lock_lost.add(1, &[role_label(role), KeyValue::new("reason", reason.as_str())]);
    }

    pub(super) fn session(&self, state: &SessionState) {
        let state = match state {
            SessionState::Connecting => 0,
            SessionState::Connected(_) => 1,
            SessionState::Suspended(_) => 2,
            SessionState::Lost(_) => 3,
            // Closed, and whatever may come: not usable.
            _ => 4,
        };
        self.now.session.store(state, Ordering::Relaxed);
    }

    /// A release was not confirmed in time.
    pub fn release_pending(&self) {
        self.release_pending.add(1, &[]);
    }

    /// The fence refused a write.
    pub fn fenced(&self, reason: &'static str) {
        self.fenced.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// A request was answered.
    pub fn request(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        let operation = KeyValue::new("operation", operation);
        self.request_duration.record(took.as_secs_f64(), std::slice::from_ref(&operation));
        self.requests.add(1, &[operation, KeyValue::new("outcome", outcome)]);
    }
}

impl Now {
    fn waits(&self) -> MutexGuard<'_, HashMap<u64, (Role, Instant)>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Role, i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Observe<'a> = dyn Fn(f64, &[KeyValue]) + 'a;

fn observable(meter: &Meter, name: MetricName, read: impl Fn(&Observe<'_>) + Send + Sync + 'static) {
    let gauge = meter.f64_observable_gauge(name.name).with_unit(name.unit).with_description(name.help);
    gauge.with_callback(move |observer| read(&|value, labels| observer.observe(value, labels))).build();
}
