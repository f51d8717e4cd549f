//! Is the service ready, and if not, why?
//!
//! Promises an answer without I/O: the database is asked in the background, at most once every half second. What it says
//! may be that old.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::watch;
use zk_locks::Session;

use crate::{
    replicas::{Registration, Registrations},
    store::Store,
};

/// Pause between two questions to the database.
const PROBE_PAUSE: Duration = Duration::from_millis(500);
/// How long an answer may take. A slow database is not a dead one: requests find out by themselves.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// What the service knows about itself and its dependencies.
pub struct Health {
    database: watch::Sender<Result<(), String>>,
    migrated: AtomicBool,
    draining: AtomicBool,
    session: Session,
    registrations: Registrations,
}

impl Health {
    /// Nothing is known yet.
    pub fn new(session: Session, registrations: Registrations) -> Self {
        Self {
            database: watch::Sender::new(Err("not asked yet".to_owned())),
            migrated: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            session,
            registrations,
        }
    }

    /// The schema is up to date.
    pub fn migrated(&self) {
        self.migrated.store(true, Ordering::Release);
    }

    /// No new work from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether the service is shutting down.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Asks the database for ever.
    pub async fn watch_database(&self, store: &Store) {
        let mut connection = None;
        loop {
            let answer = store.probe(&mut connection, PROBE_WITHIN).await.map_err(|error| error.to_string());
            self.database.send_if_modified(|known| {
                let changed = known.is_ok() != answer.is_ok();
                match &answer {
                    Ok(()) if changed => tracing::info!("the database answers"),
                    Err(reason) if changed => tracing::warn!(reason, "the database does not answer"),
                    _ => {}
                }
                *known = answer;
                changed
            });
            tokio::time::sleep(PROBE_PAUSE).await;
        }
    }

    /// Why nothing can be written now, if that is known. Asked before a request queues for a lock it could not use.
    pub fn database_is_down(&self) -> Option<String> {
        if let Err(reason) = &*self.database.borrow() {
            return Some(reason.clone());
        }
        (!self.migrated.load(Ordering::Acquire)).then(|| "the schema is not up to date yet".to_owned())
    }

    /// Everything that keeps the service from being ready.
    pub fn report(&self) -> (bool, Value) {
        let database = self.database_is_down();
        let state = self.session.state();
        let zookeeper =
            (!state.is_connected()).then(|| format!("the zookeeper session is {}", state.as_str()));
        let registration = match &*self.registrations.borrow() {
            Registration::Accepted => None,
            Registration::Pending => Some("this replica is not registered yet".to_owned()),
            Registration::Refused(refusal) => Some(refusal.to_string()),
        };
        let draining = self.is_draining().then(|| "the service is shutting down".to_owned());
        let checks = [
            ("database", database),
            ("zookeeper", zookeeper),
            ("registration", registration),
            ("serving", draining),
        ];
        let reasons: Vec<Value> = checks
            .iter()
            .filter_map(|(check, reason)| Some(json!({"check": check, "reason": reason.as_ref()?})))
            .collect();
        (reasons.is_empty(), json!({"ready": reasons.is_empty(), "reasons": reasons}))
    }
}
