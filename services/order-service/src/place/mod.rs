//! The use cases: place an order, cancel it, set and restock.
//!
//! All of them go through one skeleton (`critical`): lock, look, work, write, commit, and only then release. Promises that
//! a request is answered by its deadline plus a fixed margin whatever is down, that the work goes on when the client
//! disconnects, and that what is said about the outcome is true. Does not retry a write.

mod cancel;
mod change;
mod critical;
mod failure;
mod harness;
mod order;
mod record;
mod replies;
mod stock;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};

pub use cancel::cancel_order;
pub use failure::Failure;
pub use harness::{Answer, MARGIN, read};
pub use order::place_order;
pub use stock::{consistent_stock, restock, set_stock};

use crate::{
    health::Health,
    lockers::{Locker, Mode, Writer},
    replicas::{Registration, Registrations},
    store::Store,
    tasks::Tasks,
    telemetry::Metrics,
};

/// What the use cases work with.
pub struct Service {
    /// This replica's name.
    pub instance: String,
    /// Who may enter.
    pub mode: &'static Mode,
    /// How a row is changed.
    pub writer: Writer,
    /// Deadline of a request, counted from its arrival.
    pub lock_wait: Duration,
    /// The database.
    pub store: Store,
    /// The locks.
    pub locker: Locker,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What is known about the dependencies.
    pub health: Health,
    /// Whether this replica may work.
    pub registrations: Registrations,
    /// Work that outlives its request.
    pub tasks: Tasks,
    /// As many as there may be requests; work keeps its place when its client leaves.
    pub places: Arc<Semaphore>,
    /// Turns true when a shutdown has no time left.
    pub given_up: watch::Receiver<bool>,
    /// The slow part of an order.
    pub work: Work,
}

/// How long the slow part of an order takes; can be changed while the service runs.
#[derive(Debug)]
pub struct Work(AtomicU64);

impl Work {
    /// That long.
    pub fn new(work: Duration) -> Self {
        Self(AtomicU64::new(millis(work)))
    }

    /// For orders that begin it from now on.
    pub fn set(&self, work: Duration) {
        self.0.store(millis(work), Ordering::Relaxed);
    }

    /// As it is now.
    pub fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Service {
    /// A place for the work of a request, until that is decided. The limit on requests does not bound the work that clients
    /// leave behind: a storm of clients that give up and try again would.
    fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Failure::Overloaded)
    }

    /// Refuses at once what would wait for a database that is away.
    fn database_answers(&self) -> Result<(), Failure> {
        let Some(reason) = self.health.database_is_down() else { return Ok(()) };
        tracing::debug!(reason, "refused without asking the database");
        Err(Failure::unavailable("the database does not answer"))
    }

    /// Waits until this replica may work; after a lost session that takes a moment.
    async fn admitted(&self, deadline: Instant) -> Result<(), Failure> {
        let mut registrations = self.registrations.clone();
        let decided = registrations.wait_for(|registration| *registration != Registration::Pending);
        match timeout_at(deadline, decided).await {
            Ok(Ok(registration)) if *registration == Registration::Accepted => Ok(()),
            _ => Err(Failure::unavailable("this replica is not registered")),
        }
    }
}
