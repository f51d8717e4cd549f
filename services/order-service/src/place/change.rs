//! A change with an optional key: the kept reply, or the skeleton and what it came to.

use super::{
    Answer, Failure, Service,
    critical::{self, MakeReply},
    harness::{Done, Job},
    replies,
};
use crate::{
    domain::{Command, IdempotencyKey, Keyed, Kind, RequestHash},
    store::{Kept, Reply, StoreError, Written},
};

/// Serves a command under its key.
pub(super) async fn change(
    service: &Service,
    job: &Job,
    command: &Command,
    key: Option<IdempotencyKey>,
    reply: &MakeReply<'_>,
) -> Done {
    let keyed = key.map(|key| Keyed { hash: RequestHash::of(command), key });
    if let Some(keyed) = &keyed {
        match look_up(service, job, keyed).await {
            Ok(None) => {}
            Ok(Some(answer)) => return Done::without_lock(Ok(answer)),
            Err(failure) => return Done::without_lock(Err(failure)),
        }
    }
    let passage = critical::run(service, job, command, keyed.as_ref(), reply).await;
    let outcome = passage.written.and_then(|written| answer(written, command, keyed.as_ref()));
    Done { outcome, held: passage.held, incident: passage.incident }
}

async fn look_up(service: &Service, job: &Job, keyed: &Keyed) -> Result<Option<Answer>, Failure> {
    if service.health.database_is_down().is_some() {
        return Err(Failure::KeyUnread { reason: "the database does not answer".to_owned() });
    }
    match service.store.kept(&keyed.key, job.deadline).await {
        Ok(kept) => kept.map(|kept| replay(kept, keyed)).transpose(),
        Err(StoreError::Unavailable { operation, reason }) => {
            tracing::warn!(operation, reason, "a key could not be looked up");
            Err(Failure::KeyUnread { reason: format!("the database could not {operation}") })
        }
        Err(bug) => Err(bug.into()),
    }
}

fn replay(kept: Kept, keyed: &Keyed) -> Result<Answer, Failure> {
    let reply = kept.reply_to(&keyed.hash).ok_or(Failure::KeyConflict)?;
    Ok(Answer { reply, outcome: "replayed", replayed: true })
}

fn answer(written: Written, command: &Command, keyed: Option<&Keyed>) -> Result<Answer, Failure> {
    match (written, keyed) {
        (Written::Applied { reply, .. }, _) => Ok(applied(reply, command.kind())),
        (Written::Refused { reply, refusal }, _) => {
            Ok(Answer { reply, outcome: replies::refusal_code(&refusal), replayed: false })
        }
        (Written::KeyTaken(kept), Some(keyed)) => replay(kept, keyed),
        // Only a request with a key meets a taken one, and a cancellation asks for the order itself.
        (Written::KeyTaken(_) | Written::AlreadyCancelled, _) => Err(Failure::Unknown),
    }
}

fn applied(reply: Reply, kind: Kind) -> Answer {
    let outcome = match kind {
        Kind::Order => "accepted",
        Kind::Cancel => "cancelled",
        Kind::Restock => "restocked",
        Kind::Set => "set",
    };
    Answer { reply, outcome, replayed: false }
}
