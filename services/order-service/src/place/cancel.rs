//! Cancelling an order: its units come back once, however often it is asked for.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::field::Empty;
use uuid::Uuid;

use super::{
    Answer, Failure, Service, critical,
    harness::{Asked, Done, Job, submit},
    replies,
};
use crate::{
    domain::Command,
    lockers::Held,
    store::{Decided, Order, Reply, Written},
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
    submit(service, "cancel", arrived, Asked::Again, span, use_case).await
}

async fn cancel(service: &Service, job: &Job, id: Uuid) -> Done {
    let order = match look_up(service, id, job.deadline).await {
        Ok(order) => order,
        Err(failure) => return Done::without_lock(Err(failure.unsettled())),
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
    let mut outcome = match passage.written {
        Ok(Written::Applied { reply, .. }) => Ok(answer(reply)),
        Ok(Written::Refused { reply, refusal }) => {
            Ok(Answer { reply, outcome: replies::refusal_code(&refusal), replayed: false })
        }
        // Somebody cancelled it between our look and our lock: the look below finds when.
        Ok(Written::AlreadyCancelled | Written::KeyTaken(_)) => Err(Failure::Unknown),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome {
        let said_before = async |until| {
            look_up(service, id, until).await.map(|order| replies::cancelled(&order).map(answer))
        };
        outcome = job.settle(failure, said_before).await;
    }
    Done { outcome, held: passage.held, incident: passage.incident }
}

async fn look_up(service: &Service, id: Uuid, until: Instant) -> Result<Order, Failure> {
    service.database_answers()?;
    service.store.order(id, until).await?.ok_or(Failure::UnknownOrder)
}

fn answer(reply: Reply) -> Answer {
    Answer { reply, outcome: "cancelled", replayed: false }
}
