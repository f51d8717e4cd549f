//! Who is let in: a limit on requests in flight, and nobody new while the service shuts down.
//!
//! Also notes when a request arrived, from which its deadline counts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use actix_web::{
    Error, HttpMessage,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::ConnectionType,
    middleware::Next,
    web,
};
use opentelemetry::{
    Context, KeyValue,
    trace::{Status, TraceContextExt},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{Shared, respond, subject::Subject};
use crate::problem::Problem;

/// When the request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived(pub(super) Instant);

/// Counts requests in flight.
#[derive(Debug)]
pub struct Admission {
    max: usize,
    in_flight: AtomicUsize,
    emptied: Notify,
}

struct Admitted(Arc<Admission>);

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

impl Admission {
    /// At most `max` at the same time.
    pub fn new(max: usize) -> Self {
        Self { max, in_flight: AtomicUsize::new(0), emptied: Notify::new() }
    }

    /// How many there are.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Waits until there is none; `false` at the deadline.
    pub async fn empty(&self, until: Instant) -> bool {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // Before the look, or the last one could leave in between.
            emptied.as_mut().enable();
            if self.in_flight() == 0 {
                return true;
            }
            if timeout_at(until, emptied).await.is_err() {
                return false;
            }
        }
    }

    fn enter(self: &Arc<Self>) -> Option<Admitted> {
        let admitted = Admitted(Arc::clone(self));
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        (before < self.max).then_some(admitted)
    }
}

/// Says in the request's span that its client went away before the answer.
struct Watched {
    context: Context,
    answered: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.answered {
            let span = self.context.span();
            span.set_attribute(KeyValue::new("error.type", "client-gone"));
            span.set_status(Status::error("the client went away before the answer"));
        }
    }
}

pub(super) async fn admit<B: MessageBody>(
    shared: web::Data<Shared>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let subject = Subject::of(request.request());
    let refused = |code, detail: &str| subject.unread(Problem::new(code, detail));
    let health = &shared.service.health;
    let mut response = if health.is_draining() {
        let problem = refused("unavailable", "This replica is shutting down; another one may serve.");
        request.into_response(respond::problem(&problem)).map_into_right_body()
    } else if let Some(admitted) = shared.admission.enter() {
        request.extensions_mut().insert(Arrived(Instant::now()));
        let mut watched = Watched { context: Context::current(), answered: false };
        let response = next.call(request).await?;
        watched.answered = true;
        drop(admitted);
        response.map_into_left_body()
    } else {
        let problem = refused("overloaded", "This replica serves as many requests as it may.");
        request.into_response(respond::problem(&problem)).map_into_right_body()
    };
    if health.is_draining() {
        // Or a client that keeps its connection would keep the server.
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_limit_holds_and_a_refused_one_takes_no_place() {
        let admission = Arc::new(Admission::new(1));
        let first = admission.enter().expect("room");
        assert!(admission.enter().is_none());
        assert_eq!(admission.in_flight(), 1);
        assert!(!admission.empty(Instant::now()).await);
        drop(first);
        assert!(admission.empty(Instant::now()).await);
        assert!(admission.enter().is_some());
    }
}
