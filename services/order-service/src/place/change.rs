//! A change with an optional key: the kept reply, or the skeleton and what it came to.

use tokio::time::Instant;

use super::{
    Answer, Failure, Service,
    critical::{self, MakeReply},
    harness::{Done, Job},
    replies,
};
use crate::{
    domain::{Command, IdempotencyKey, Keyed, Kind, RequestHash},
    store::{Kept, Reply, Written},
};

/// Serves a command under its key.
pub(super) async fn change(
    service: &Service,
    job: &Job,
    command: &Command,
    key: Option<IdempotencyKey>,
    reply: &MakeReply<'_>,
) -> Done {
    let Some(key) = key else {
        let passage = critical::run(service, job, command, None, reply).await;
        let outcome = passage.written.and_then(|written| answer(written, command, None));
        return Done { outcome, held: passage.held, incident: passage.incident };
    };
    let keyed = Keyed { hash: RequestHash::of(command), key };
    match look_up(service, &keyed, job.deadline).await {
        Ok(None) => {}
        Ok(Some(answer)) => return Done::without_lock(Ok(answer)),
        Err(failure) => return Done::without_lock(Err(failure.unsettled())),
    }
    let passage = critical::run(service, job, command, Some(&keyed), reply).await;
    let mut outcome = passage.written.and_then(|written| answer(written, command, Some(&keyed)));
    if let Err(failure) = outcome {
        outcome = job.settle(failure, async |until| look_up(service, &keyed, until).await).await;
    }
    Done { outcome, held: passage.held, incident: passage.incident }
}

/// What an earlier request with the key came to.
async fn look_up(service: &Service, keyed: &Keyed, until: Instant) -> Result<Option<Answer>, Failure> {
    service.database_answers()?;
    let kept = service.store.kept(&keyed.key, until).await.map_err(Failure::from)?;
    kept.map(|kept| replay(kept, keyed)).transpose()
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
        // Only a request with a key meets a taken one, and cancellations are not made here.
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
