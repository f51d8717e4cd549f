//! What a `lock.acquire` span tells of a wait: its attributes, and an event at every turn.
//!
//! Promises the names of the span, its attributes and events. Speaks to the current span; knows no exporter. The events
//! are of level `DEBUG`: a program that collects spans takes them from target `zk_locks`, whatever its log shows.

use std::time::Duration;

use tracing::{Span, field::Empty};

use crate::error::AcquireError;
use crate::guard::Guard;
use crate::observer::Queued;
use crate::recipe::Role;

/// The span of one call of `acquire`.
pub(crate) fn acquiring(path: &str, role: Role) -> Span {
    tracing::info_span!(
        "lock.acquire",
        lock.path = path,
        lock.recipe = %role,
        lock.node = Empty,
        lock.position = Empty,
        lock.blocker = Empty,
        lock.blocker.node = Empty,
        lock.blocker.session = Empty,
        lock.blocker.trace_id = Empty,
        lock.wait_ms = Empty,
        lock.token = Empty,
        lock.outcome = Empty,
    )
}

/// Somebody is in the way: at entry, or (`promoted`) when whoever was there before has gone.
pub(crate) fn queued(wait: &Queued, promoted: bool) {
    let Queued { position, node, session_id, blocker } = wait;
    let blocker = blocker.as_ref();
    let instance = blocker.and_then(|blocker| blocker.instance.as_deref()).unwrap_or("unknown");
    let session = format!("{session_id:#x}");
    // `00-<trace id>-<span id>-<flags>`
    let trace_id = blocker.and_then(|blocker| blocker.traceparent.as_deref()?.split('-').nth(1));
    let span = Span::current();
    if !promoted {
        span.record("lock.position", position);
    }
    span.record("lock.blocker", instance);
    span.record("lock.blocker.node", node);
    span.record("lock.blocker.session", &session);
    if let Some(trace_id) = trace_id {
        span.record("lock.blocker.trace_id", trace_id);
    }
    tracing::debug!(
        lock.position = position,
        lock.blocker = instance,
        lock.blocker.node = node,
        lock.blocker.session = session,
        lock.blocker.trace_id = trace_id,
        lock.blocker.label = blocker.and_then(|blocker| blocker.label.as_deref()),
        "{} {position}",
        if promoted { "promoted: behind" } else { "queued behind" }
    );
}

pub(crate) fn acquired(guard: &Guard, waited: Duration) {
    let wait_ms = ended("acquired", waited);
    let span = Span::current();
    span.record("lock.node", guard.node());
    span.record("lock.token", guard.token());
    span.record("lock.position", guard.position());
    tracing::debug!(lock.token = guard.token(), lock.wait_ms = wait_ms, "acquired");
}

pub(crate) fn failed(error: &AcquireError, waited: Duration) {
    let wait_ms = ended(error.as_str(), waited);
    let reason = match error {
        AcquireError::SessionLost { reason, .. } => reason.as_str(),
        other => other.as_str(),
    };
    // A place in the queue was had and is gone; else there was none, or it was given up.
    let what = if error.is_retryable() { "lost" } else { "not acquired" };
    tracing::debug!(reason, lock.wait_ms = wait_ms, "{what}");
}

pub(crate) fn cancelled(waited: Duration) {
    let wait_ms = ended("cancelled", waited);
    tracing::debug!(lock.wait_ms = wait_ms, "cancelled");
}

fn ended(outcome: &str, waited: Duration) -> f64 {
    let wait_ms = waited.as_secs_f64() * 1e3;
    Span::current().record("lock.wait_ms", wait_ms);
    Span::current().record("lock.outcome", outcome);
    wait_ms
}
