//! Placing an order.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::field::Empty;
use uuid::Uuid;

use super::{
    Answer, Failure, Service,
    change::change,
    harness::{Asked, Job, submit},
    replies,
};
use crate::{
    domain::{Command, IdempotencyKey, Lines},
    lockers::Held,
    store::Decided,
};

/// Takes all lines or none.
///
/// # Cancel safety
/// The order goes on when the future is dropped.
pub async fn place_order(
    service: &Arc<Service>,
    arrived: Instant,
    lines: Lines,
    key: Option<IdempotencyKey>,
) -> Result<Answer, Failure> {
    let id = Uuid::now_v7();
    let command = Command::Order { id, lines };
    let span = tracing::info_span!(
        "order.place",
        order.id = %id,
        order.lines = command.units().len(),
        order.outcome = Empty,
        lock.mode = service.mode.name,
        lock.writer = service.writer.as_str(),
    );
    let asked = Asked::with(key.as_ref());
    let use_case = |service: Arc<Service>, job: Job| async move {
        let reply = |decided: &Decided<'_>, held: &Held| match decided {
            Decided::Applied { changes, .. } => replies::accepted(&service, id, &job.trace_id, changes, held),
            Decided::Refused(refusal) => replies::refused(&command, refusal, held),
        };
        change(&service, &job, &command, key, &reply).await
    };
    submit(service, "order", arrived, asked, span, use_case).await
}
