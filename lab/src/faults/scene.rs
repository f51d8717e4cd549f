//! What the injector can see and touch: the lock directory, the replicas, the database.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use stack::{Child, Fleet, ZooKeeper};
use zk_locks::{Inspector, LockEntry};

use super::{Evidence, Strike, StrikeError};
use crate::progress::Progress;

/// How often state is looked at while something is awaited: well below a critical section.
pub(super) const POLL: Duration = Duration::from_millis(2);

const HOLDER_DEADLINE: Duration = Duration::from_secs(6);

/// Something that the injector needs could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// The lock directory could not be read.
    #[error("reading the lock {path}")]
    Lock {
        /// The lock.
        path: String,
        /// Why.
        source: zk_locks::OperationError,
    },
    /// The database could not be asked.
    #[error("asking the database {question}")]
    Database {
        /// What was asked.
        question: &'static str,
        /// Why.
        source: sqlx::Error,
    },
    /// The holder is no replica of this run.
    #[error("the lock {path} is held by {instance:?}, which is no replica of this run")]
    Stranger {
        /// The lock.
        path: String,
        /// Who holds it, as its node says.
        instance: Option<String>,
    },
}

/// A replica as the injector sees it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) url: String,
    pub(super) child: Child,
}

/// The holder of the lock, and the replica it lives in.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) entry: LockEntry,
    pub(super) instance: String,
    pub(super) target: Target,
}

/// How faults strike.
#[derive(Debug, Clone)]
pub struct Aim {
    /// The lock whose holder is struck.
    pub lock_path: String,
    /// The slow part of the critical section.
    pub work: Duration,
    /// Strike until a late write was seen, not only until a holder was struck.
    pub wants_late_write: bool,
    /// Opens the fault endpoints.
    pub faults_token: String,
}

/// Where faults strike.
pub struct Scene<'a> {
    pub(super) zookeeper: &'a ZooKeeper,
    pub(super) evidence: Evidence,
    pub(super) lock_path: String,
    pub(super) work: Duration,
    pub(super) wants_late_write: bool,
    progress: &'a Progress,
    inspector: &'a Inspector,
    targets: HashMap<String, Target>,
    faults_token: String,
    http: reqwest::Client,
}

/// What `POST /faults/session/expire` answers.
#[derive(Debug, Deserialize)]
pub(super) struct Expired {
    /// The session that was ended.
    pub(super) session: serde_json::Value,
}

impl<'a> Scene<'a> {
    /// A scene over a running fleet.
    pub fn new(
        fleet: &Fleet,
        zookeeper: &'a ZooKeeper,
        inspector: &'a Inspector,
        evidence: Evidence,
        aim: Aim,
        progress: &'a Progress,
    ) -> Self {
        let targets = fleet
            .replicas()
            .iter()
            .map(|replica| {
                let target = Target { url: replica.url().to_owned(), child: replica.child() };
                (replica.name().to_owned(), target)
            })
            .collect();
        Self {
            zookeeper,
            evidence,
            lock_path: aim.lock_path,
            work: aim.work,
            wants_late_write: aim.wants_late_write,
            progress,
            inspector,
            targets,
            faults_token: aim.faults_token,
            http: reqwest::Client::new(),
        }
    }

    /// Says what a strike did.
    pub(super) fn report(&self, strike: &Strike) {
        let how = if strike.confirmed { "confirmed" } else { "missed" };
        self.progress.say(&format!("{} {how}: {}, {}", strike.kind.name(), strike.instance, strike.evidence));
    }

    /// Whoever holds the lock now.
    pub(super) async fn holder(&self) -> Result<Option<LockEntry>, SceneError> {
        let asked = self.inspector.holder(&self.lock_path).await;
        asked.map_err(|source| SceneError::Lock { path: self.lock_path.clone(), source })
    }

    /// Whether a token that was seen holding still does; its node is gone as soon as another one leads the queue.
    pub(super) async fn still_holds(&self, token: i64) -> Result<bool, SceneError> {
        Ok(self.holder().await?.is_some_and(|entry| entry.token == token))
    }

    /// Waits for a holder that has only just entered, so that most of its critical section is still to come.
    pub(super) async fn fresh_holder(&self) -> Result<Holder, StrikeError> {
        let begun = Instant::now();
        let mut before: Option<i64> = None;
        loop {
            if let Some(entry) = self.holder().await? {
                if before.is_some_and(|token| token != entry.token) {
                    return Ok(self.known(entry)?);
                }
                before = Some(entry.token);
            } else {
                // An empty directory: whoever comes next is fresh.
                before = Some(i64::MIN);
            }
            if begun.elapsed() > HOLDER_DEADLINE {
                let waited_s = begun.elapsed().as_secs_f64();
                return Err(StrikeError::NoHolder { path: self.lock_path.clone(), waited_s });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn known(&self, entry: LockEntry) -> Result<Holder, SceneError> {
        let found = entry.instance.clone().and_then(|name| Some((self.targets.get(&name)?.clone(), name)));
        match found {
            Some((target, instance)) => Ok(Holder { entry, instance, target }),
            None => Err(SceneError::Stranger { path: self.lock_path.clone(), instance: entry.instance }),
        }
    }

    /// Ends the holder's ZooKeeper session through its fault endpoint.
    pub(super) async fn expire(&self, holder: &Holder) -> Result<Expired, reqwest::Error> {
        self.http
            .post(format!("{}/faults/session/expire", holder.target.url))
            .header("X-Fault-Token", &self.faults_token)
            .timeout(Duration::from_secs(5))
            .send()
            .await?
            .error_for_status()?
            .json()
            .await
    }
}
