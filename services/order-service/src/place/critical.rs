//! The skeleton of every change: lock, look, work, write. The lock comes back with the outcome, still held.
//!
//! Promises that the order of things cannot be got wrong by a use case: the release is the caller's last step and needs
//! the value that only this function gives after the commit's reply.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tracing::{Instrument, field::Empty};

use super::{Failure, Service, harness::Job, record::record};
use crate::{
    domain::{Command, Keyed, Kind, Sku},
    lockers::{Access, Held, Hold, Label, Writer},
    store::{Decided, Entry, Incident, IncidentKind, Reply, Writing, Written},
    telemetry,
};

/// Least time for the transaction: a holder that wakes late still asks the fence, and the gate keeps the answer true.
const WRITE_MIN: Duration = Duration::from_secs(1);

/// Time for the commit after everything else must be done.
const SETTLE: Duration = Duration::from_millis(250);

/// What happened while the lock was held.
pub(super) struct Passage {
    pub(super) written: Result<Written, Failure>,
    pub(super) held: Option<Held>,
    pub(super) incident: Option<Incident>,
}

/// Makes the reply from what was decided and the locks that are held.
pub(super) type MakeReply<'a> = dyn Fn(&Decided<'_>, &Held) -> Reply + Send + Sync + 'a;

/// Runs a command under the locks of its SKUs.
pub(super) async fn run(
    service: &Service,
    job: &Job,
    command: &Command,
    keyed: Option<&Keyed>,
    reply: &MakeReply<'_>,
) -> Passage {
    let held = match enter(service, job, command).await {
        Ok(held) => held,
        Err(failure) => return Passage { written: Err(failure), held: None, incident: None },
    };
    let written = inside(service, job, command, keyed, reply, &held).await;
    let incident = match &written {
        Err(Failure::LockLost { sku, reason }) => Some(Incident {
            kind: IncidentKind::LockLost,
            sku: sku.clone(),
            order_id: command.order_id(),
            token: held.on(sku).map(Hold::token),
            fence: None,
            reason: reason.as_str(),
        }),
        Err(Failure::FencedOut { sku, token, fence }) => Some(Incident {
            kind: IncidentKind::FencedOut,
            sku: sku.clone(),
            order_id: command.order_id(),
            token: Some(*token),
            fence: Some(*fence),
            reason: telemetry::OVERTAKEN,
        }),
        _ => None,
    };
    Passage { written, held: Some(held), incident }
}

async fn enter(service: &Service, job: &Job, command: &Command) -> Result<Held, Failure> {
    service.database_answers()?;
    service.admitted(job.deadline).await?;
    let text = match command.order_id() {
        Some(id) => format!("{} {id}", command.kind().as_str()),
        None => command.kind().as_str().to_owned(),
    };
    let label = Label { traceparent: telemetry::traceparent(), text };
    Ok(service.locker.acquire(Access::Write, &command.skus(), job.deadline, &label).await?)
}

async fn inside(
    service: &Service,
    job: &Job,
    command: &Command,
    keyed: Option<&Keyed>,
    reply: &MakeReply<'_>,
    held: &Held,
) -> Result<Written, Failure> {
    let looked = match service.writer {
        Writer::Plain => Some(service.store.look(&command.skus(), job.deadline).await?),
        Writer::Fenced => None,
    };
    work(service, job, command, held).await?;
    // No second look at the lock: between any look and the write it can be lost. The fence is asked in the write.
    let until = job.deadline.max(Instant::now() + WRITE_MIN);
    let entries: Vec<Entry> = command.skus().into_iter().map(|sku| entry(sku, held)).collect();
    let reply = |decided: &Decided<'_>| reply(decided, held);
    let writing = Writing {
        command,
        keyed,
        entries: &entries,
        looked,
        trace_id: &job.trace_id,
        reply: &reply,
        until,
        settle_until: until + SETTLE,
    };
    let span = tracing::info_span!(
        "stock.deduct",
        otel.name = if command.kind() == Kind::Order { "stock.deduct" } else { "stock.adjust" },
        stock.sku = entries.first().map(|entry| entry.sku.as_str()),
        stock.lines = entries.len(),
        stock.on_hand.before = Empty,
        stock.on_hand.after = Empty,
        stock.outcome = Empty,
        stock.fence = Empty,
        lock.token = held.token(),
    );
    let written = service.store.write(writing, &job.gate).instrument(span.clone()).await;
    record(&span, command.kind(), &written);
    Ok(written?)
}

fn entry(sku: Sku, held: &Held) -> Entry {
    let lock = held.on(&sku);
    Entry {
        token: lock.map(Hold::token),
        node: lock.map(Hold::node),
        acquired_at: lock.map(Hold::acquired_at),
        sku,
    }
}

/// The slow part of a real order. A holder that finds it done does not ask whether it still holds: see above.
async fn work(service: &Service, job: &Job, command: &Command, held: &Held) -> Result<(), Failure> {
    let work = service.work.get();
    if command.kind() != Kind::Order || work.is_zero() {
        return Ok(());
    }
    async {
        tokio::select! {
            biased;
            () = sleep(work) => Ok(()),
            (sku, reason) = held.lost() => Err(Failure::LockLost { sku: sku.clone(), reason }),
            () = sleep_until(job.deadline) => Err(Failure::Deadline),
        }
    }
    .instrument(tracing::info_span!("order.work"))
    .await
}
