//! What the lock library tells, turned into metrics, and the link from a waiter's span to the span that blocks it.

use std::sync::Arc;

use opentelemetry::{KeyValue, trace::Status};
use tracing::Span;
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
        let Some(blocker) = &wait.blocker else { return };
        if let Some(blocking) = blocker.traceparent.as_deref().and_then(span_context) {
            let mut attributes = vec![KeyValue::new("lock.blocker.node", wait.node.clone())];
            if let Some(instance) = &blocker.instance {
                attributes.push(KeyValue::new("lock.blocker", instance.clone()));
            }
            Span::current().add_link_with_attributes(blocking, attributes);
        }
    }

    fn acquired(&self, attempt: &Attempt) {
        self.0.waited(attempt, "acquired");
        self.0.holds(attempt.role);
    }

    fn failed(&self, attempt: &Attempt, error: &AcquireError) {
        if !matches!(error, AcquireError::Busy { .. }) {
            Span::current().set_status(Status::error(error.to_string()));
        }
        self.0.waited(attempt, error.as_str());
    }

    fn cancelled(&self, attempt: &Attempt) {
        self.0.waited(attempt, "cancelled");
    }

    fn lost(&self, held: Held<'_>, reason: Lost) {
        Span::current().set_status(Status::error(format!("the lock on {} was lost: {reason}", held.path)));
        self.0.lost(held.role, reason);
    }

    fn released(&self, held: Held<'_>, _result: Result<(), &ReleaseError>) {
        self.0.held(held);
    }

    fn session(&self, state: &SessionState) {
        self.0.session(state);
    }
}
