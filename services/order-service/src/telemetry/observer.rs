//! What the lock library tells, turned into metrics, and the link from a waiter's span to the span that blocks it.

use std::sync::Arc;

use opentelemetry::KeyValue;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use zk_locks::{AcquireError, Attempt, Held, Lost, Observer, Queued, ReleaseError, SessionState};

use super::{Metrics, span_context};

/// Listens to the lock library.
#[derive(Debug)]
pub struct LockObserver(Arc<Metrics>);

impl LockObserver {
    /// An observer that counts in these metrics.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self(metrics)
    }
}

impl Observer for LockObserver {
    fn started(&self, attempt: &Attempt) {
        self.0.waits(attempt);
    }

    fn queued(&self, _attempt: &Attempt, wait: &Queued) {
        let (span, blocker) = (tracing::Span::current(), wait.blocker.as_ref());
        let instance = blocker.and_then(|blocker| blocker.instance.clone());
        let mut attributes = vec![KeyValue::new("lock.blocker.node", wait.node.clone())];
        attributes.extend(instance.map(|instance| KeyValue::new("lock.blocker.instance", instance)));
        span.add_event(format!("queued behind {}", wait.position), attributes.clone());
        let traceparent = blocker.and_then(|blocker| blocker.traceparent.as_deref());
        if let Some(blocking) = traceparent.and_then(span_context) {
            span.add_link_with_attributes(blocking, attributes);
        }
    }

    fn acquired(&self, attempt: &Attempt) {
        self.0.waited(attempt, "acquired");
        self.0.holds(attempt.role);
    }

    fn failed(&self, attempt: &Attempt, error: &AcquireError) {
        self.0.waited(attempt, error.as_str());
    }

    fn cancelled(&self, attempt: &Attempt) {
        self.0.waited(attempt, "cancelled");
    }

    fn lost(&self, held: Held<'_>, reason: Lost) {
        self.0.lost(held.role, reason);
    }

    fn released(&self, held: Held<'_>, _result: Result<(), &ReleaseError>) {
        self.0.held(held);
    }

    fn session(&self, state: &SessionState) {
        self.0.session(state);
    }
}
