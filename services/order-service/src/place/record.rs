//! What the span of a change tells: the stock before and after, and how it ended.

use opentelemetry::trace::Status;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::replies;
use crate::{
    domain::{Kind, Refusal},
    store::{WriteError, Written},
};

/// Ends the story of a `stock.deduct` or `stock.adjust`. A change that was kept out is an error, a refusal is none.
pub(super) fn record(span: &Span, kind: Kind, written: &Result<Written, WriteError>) {
    let outcome = match written {
        Ok(Written::Applied { changes, .. }) => {
            if let Some(change) = changes.first() {
                on_hand(span, change.before, change.after);
            }
            if kind == Kind::Order { "accepted" } else { "applied" }
        }
        Ok(Written::Refused { refusal, .. }) => {
            if let Refusal::OutOfStock { available, .. } = refusal {
                on_hand(span, *available, *available);
            }
            replies::refusal_code(refusal)
        }
        Ok(Written::KeyTaken(_) | Written::AlreadyCancelled) => "done-before",
        Err(WriteError::FencedOut { fence, .. }) => {
            span.record("stock.fence", fence);
            "fenced-out"
        }
        Err(WriteError::GivenUp) => "given-up",
        Err(WriteError::Unknown) => "unknown",
        Err(_) => "failed",
    };
    span.record("stock.outcome", outcome);
    if let Err(error) = written {
        if let WriteError::FencedOut { sku, token, fence } = error {
            tracing::warn!(
                parent: span,
                stock.sku = %sku,
                lock.token = token,
                stock.fence = fence,
                "fenced out: a later holder has written"
            );
        }
        span.set_status(Status::error(error.to_string()));
    }
}

fn on_hand(span: &Span, before: i64, after: i64) {
    span.record("stock.on_hand.before", before);
    span.record("stock.on_hand.after", after);
}
