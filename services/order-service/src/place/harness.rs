//! Between the request and the task that works for it.
//!
//! Promises an answer by the deadline plus [`MARGIN`], and that the answer and the task agree: before *not placed* is said
//! for want of time, the gate is closed, and a task behind a closed gate rolls back.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant as Clock},
};

use opentelemetry::trace::Status;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{Failure, Service};
use crate::{
    lockers::Held,
    problem::Standing,
    store::{Gate, Incident, IncidentKind, Reply},
    telemetry::{self, Metrics},
};

/// How long after its deadline a request is answered at the latest, half a second less the time for the way back.
pub const MARGIN: Duration = Duration::from_millis(300);

/// How long after its deadline a request that changed nothing may still look for an earlier one.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How long a refused holder looks whether it has lost its lock after all.
const DOUBT: Duration = Duration::from_secs(2);

/// A request that was served.
#[derive(Debug)]
pub struct Answer {
    /// What is to be sent.
    pub reply: Reply,
    /// Its stable name, for metrics and spans.
    pub outcome: &'static str,
    /// Whether it is the reply to an earlier request with the same key.
    pub replayed: bool,
}

/// What a use case is given.
pub(super) struct Job {
    pub(super) deadline: Instant,
    pub(super) gate: Arc<Gate>,
    pub(super) trace_id: String,
}

impl Job {
    /// A change failed that an earlier request may have made: says what that came to, or that nobody knows.
    pub(super) async fn settle(
        &self,
        failure: Failure,
        look: impl AsyncFnOnce(Instant) -> Result<Option<Answer>, Failure>,
    ) -> Result<Answer, Failure> {
        match look(self.deadline + LOOK).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(failure),
            Err(Failure::KeyConflict) => Err(Failure::KeyConflict),
            Err(_) => Err(failure.unsettled()),
        }
    }
}

/// What a use case comes to.
pub(super) struct Done {
    pub(super) outcome: Result<Answer, Failure>,
    /// Still held: the client hears of the outcome before the release.
    pub(super) held: Option<Held>,
    pub(super) incident: Option<Incident>,
}

impl Done {
    pub(super) fn without_lock(outcome: Result<Answer, Failure>) -> Self {
        Self { outcome, held: None, incident: None }
    }
}

fn name(outcome: &Result<Answer, Failure>) -> &'static str {
    match outcome {
        Ok(answer) => answer.outcome,
        Err(failure) => failure.code(),
    }
}

fn tell_span(span: &Span, outcome: &Result<Answer, Failure>) {
    span.record("order.outcome", name(outcome));
    if let Err(failure) = outcome
        && failure.is_error()
    {
        span.set_status(Status::error(failure.to_string()));
    }
}

/// Counts a request when it is answered, or when its client has gone before.
struct Counted<'a> {
    metrics: &'a Metrics,
    operation: &'static str,
    outcome: &'static str,
    since: Clock,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.metrics.request(self.operation, self.outcome, self.since.elapsed());
    }
}

/// Whether other requests may ask for the very same change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Each request is a change of its own.
    Once,
    /// With a key, or for a cancellation: an earlier request may have made the change already.
    Again,
}

impl Asked {
    pub(super) fn with<T>(key: Option<&T>) -> Self {
        if key.is_some() { Self::Again } else { Self::Once }
    }

    /// Whoever did not look for an earlier request denies nothing.
    fn unread(self, failure: Failure) -> Failure {
        match self {
            Self::Once => failure,
            Self::Again => failure.unsettled(),
        }
    }
}

/// Runs a use case in a task of its own and waits for what it comes to.
pub(super) async fn submit<F>(
    service: &Arc<Service>,
    operation: &'static str,
    arrived: Instant,
    asked: Asked,
    span: Span,
    use_case: impl FnOnce(Arc<Service>, Job) -> F,
) -> Result<Answer, Failure>
where
    F: Future<Output = Done> + Send + 'static,
{
    let metrics = &service.metrics;
    let mut counted = Counted { metrics, operation, outcome: "client-gone", since: arrived.into_std() };
    let place = service.place().map_err(|failure| {
        counted.outcome = failure.code();
        asked.unread(failure)
    })?;
    let deadline = arrived + service.lock_wait;
    let trace_id = span.in_scope(telemetry::trace_id);
    let gate = Arc::new(Gate::default());
    let job = Job { deadline, gate: Arc::clone(&gate), trace_id: trace_id.clone() };
    let (tell, told) = oneshot::channel();
    let work = use_case(Arc::clone(service), job);
    let after = Arc::clone(service);
    let in_task = span.clone();
    drop(
        service.tasks.spawn(
            async move {
                let done = work.await;
                tell_span(&in_task, &done.outcome);
                // Before the answer: the client's next request must not meet its last one.
                drop(place);
                // Nobody listens: the client has gone, or time ran out; the work is done all the same.
                tell.send(done.outcome).ok();
                clean_up(&after, done.held, done.incident).await;
            }
            .instrument(span),
        ),
    );
    let outcome = tokio::select! {
        biased;
        told = told => told.unwrap_or_else(|_| {
            tracing::error!(trace_id, operation, "a task ended without an answer");
            Err(asked.unread(Failure::Bug(if gate.close() { Standing::NotPlaced } else { Standing::Unknown })))
        }),
        () = no_time_left(service, deadline) => {
            Err(asked.unread(if gate.close() { Failure::Deadline } else { Failure::Unknown }))
        }
    };
    counted.outcome = name(&outcome);
    outcome
}

/// A read: bounded, and on the runtime that owns the connections.
pub async fn read<T, E, F>(
    service: &Arc<Service>,
    arrived: Instant,
    query: impl FnOnce(Arc<Service>, Instant) -> F,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let deadline = arrived + service.lock_wait;
    service.database_answers()?;
    let place = service.place()?;
    let query = query(Arc::clone(service), deadline).instrument(Span::current());
    let task = service.tasks.spawn(async move {
        let _place = place;
        query.await
    });
    match timeout_at(deadline + MARGIN, task).await {
        Ok(Ok(result)) => result.map_err(Into::into),
        Ok(Err(error)) => {
            super::failure::log_bug(&error);
            Err(Failure::Bug(Standing::NotPlaced))
        }
        Err(_) => Err(Failure::Deadline),
    }
}

async fn no_time_left(service: &Service, deadline: Instant) {
    let mut given_up = service.given_up.clone();
    tokio::select! {
        () = sleep_until(deadline + MARGIN) => {}
        // An error: the process is past its shutdown, and so are we.
        _ = given_up.wait_for(|given_up| *given_up) => {}
    }
}

async fn clean_up(service: &Service, held: Option<Held>, incident: Option<Incident>) {
    let incident = match (&held, incident) {
        (Some(held), Some(incident)) => Some(explain(held, incident).await),
        (_, incident) => incident,
    };
    if let Some(held) = held {
        held.release(&service.metrics).await;
    }
    if let Some(incident) = incident {
        if incident.kind == IncidentKind::FencedOut {
            service.metrics.fenced(incident.reason);
        }
        service.store.record(&incident).await;
    }
}

/// A refused holder that still holds alone was not overtaken: its token is too low for another reason.
async fn explain(held: &Held, incident: Incident) -> Incident {
    if incident.kind != IncidentKind::FencedOut {
        return incident;
    }
    let overtaken = held.on(&incident.sku).is_none_or(|hold| hold.check().is_err())
        || timeout(DOUBT, held.lost()).await.is_ok();
    if overtaken {
        return incident;
    }
    tracing::error!(
        sku = %incident.sku,
        token = incident.token,
        fence = incident.fence,
        "the fence refuses the token of a lock that is held alone: tokens have started again below the fences in \
         the database. Was ZooKeeper's data wiped or replaced? Every write to this SKU is refused until its fence is \
         reset: `lockstock fences`."
    );
    Incident { reason: telemetry::TOKEN_BEHIND_FENCE, ..incident }
}
