//! Cancelling an order: its units come back once, however often it is asked for.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::field::Empty;
use uuid::Uuid;

use super::{
    Answer, Failure, Service, critical,
    harness::{Done, Job, submit},
    replies,
};
use crate::{
    domain::Command,
    lockers::Held,
    problem::Standing,
    store::{Decided, Reply, Written},
};

/// Gives the units of an order back. Asked again, it says the same and does nothing.
///
/// # Cancel safety
/// The cancellation goes on when the future is dropped.
pub async fn cancel_order(service: &Arc<Service>, arrived: Instant, id: Uuid) -> Result<Answer, Failure> {
    let span = tracing::info_span!(
        "order.cancel",
        order.id = %id,
        order.outcome = Empty,
        lock.mode = service.mode.name,
        lock.writer = service.writer.as_str(),
    );
    let use_case = |service: Arc<Service>, job: Job| async move { cancel(&service, &job, id).await };
    submit(service, "cancel", arrived, false, span, use_case).await
}

async fn cancel(service: &Service, job: &Job, id: Uuid) -> Done {
    if service.health.database_is_down().is_some() {
        return Done::without_lock(Err(Failure::unavailable("the database does not answer")));
    }
    let order = match service.store.order(id, job.deadline).await {
        Ok(Some(order)) => order,
        Ok(None) => return Done::without_lock(Err(Failure::UnknownOrder)),
        Err(error) => return Done::without_lock(Err(error.into())),
    };
    if let Some(reply) = replies::cancelled(&order) {
        return Done::without_lock(Ok(answer(reply)));
    }
    let command = Command::Cancel { id, lines: order.command_lines() };
    let reply = |decided: &Decided<'_>, held: &Held| match decided {
        Decided::Applied { changes, cancelled_at } => {
            let at = cancelled_at.expect("a cancellation that applies has a time");
            replies::cancelling(service, id, at, changes)
        }
        Decided::Refused(refusal) => replies::refused(&command, refusal, held),
    };
    let passage = critical::run(service, job, &command, None, &reply).await;
    let outcome = match passage.written {
        Ok(Written::Applied { reply, .. }) => Ok(answer(reply)),
        Ok(Written::Refused { reply, refusal }) => {
            Ok(Answer { reply, outcome: replies::refusal_code(&refusal), replayed: false })
        }
        Ok(Written::AlreadyCancelled | Written::KeyTaken(_)) => said_before(service, job, id).await,
        Err(failure) => Err(failure),
    };
    Done { outcome, held: passage.held, incident: passage.incident }
}

/// Somebody cancelled it between our look and our lock.
async fn said_before(service: &Service, job: &Job, id: Uuid) -> Result<Answer, Failure> {
    let order = service.store.order(id, job.deadline).await?;
    let reply = order.as_ref().and_then(replies::cancelled);
    reply.map(answer).ok_or(Failure::Bug(Standing::NotPlaced))
}

fn answer(reply: Reply) -> Answer {
    Answer { reply, outcome: "cancelled", replayed: false }
}
