//! What the lock library tells, turned into metrics, and the link from a waiter's span to the span that blocks it.

use std::{sync::Arc, time::Duration};

use opentelemetry::KeyValue;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use zk_locks::{Lost, Observer, Queued, Recipe, ReleaseError, SessionState};

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
    fn queued(&self, _path: &str, _recipe: Recipe, wait: &Queued) {
        let Some(blocker) = &wait.blocker else { return };
        if let Some(blocking) = blocker.traceparent.as_deref().and_then(span_context) {
            let mut attributes = vec![KeyValue::new("lock.blocker", wait.node.clone())];
            if let Some(instance) = &blocker.instance {
                attributes.push(KeyValue::new("lock.blocker.instance", instance.clone()));
            }
            tracing::Span::current().add_link_with_attributes(blocking, attributes);
        }
    }

    fn lost(&self, _path: &str, recipe: Recipe, reason: Lost) {
        self.0.lost(recipe, reason);
    }

    fn released(&self, _path: &str, recipe: Recipe, held: Duration, _result: Result<(), &ReleaseError>) {
        self.0.hold(recipe, held);
    }

    fn session(&self, state: &SessionState) {
        self.0.session(state);
    }
}
