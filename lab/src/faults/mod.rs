//! Faults that strike whoever holds the lock, and the proof that they did.
//!
//! A strike counts only if it is *confirmed*: the struck critical section is named by its fencing token, and that
//! token's fate is read from the database and from ZooKeeper. A strike that missed its moment is recorded as missed
//! and tried again. Nothing here judges the outcome; that is the audit's work.

pub mod engine;
mod evidence;
mod expire_holder;
mod freeze_holder;
mod negotiated;
mod scene;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use loadtest::history::now_ms;
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::experiments::{FaultKind, Faults};

pub use evidence::Evidence;
pub use scene::{Aim, Scene, SceneError};

/// One fault, tried once.
#[derive(Debug, Clone)]
pub struct Strike {
    /// Which fault.
    pub kind: FaultKind,
    /// When it struck, milliseconds since the Unix epoch.
    pub at_ms: f64,
    /// When it was over: a frozen process went on.
    pub until_ms: f64,
    /// The replica it struck.
    pub instance: String,
    /// Where that replica listens.
    pub url: String,
    /// Token of the critical section it was aimed at, or of the one it hit.
    pub token: i64,
    /// The ZooKeeper session of the holder.
    pub session_id: i64,
    /// Whether it is proved to have hit a critical section.
    pub confirmed: bool,
    /// What proves it, or what was missed.
    pub evidence: String,
    /// Whether the struck critical section committed after its lock was gone: the danger itself.
    pub wrote_late: bool,
}

impl Strike {
    /// A strike at a holder, begun now, of which nothing is known yet.
    fn begin(kind: FaultKind, holder: &scene::Holder) -> Self {
        let now = now_ms();
        Self {
            kind,
            at_ms: now,
            until_ms: now,
            instance: holder.instance.clone(),
            url: holder.target.url.clone(),
            token: holder.entry.token,
            session_id: holder.entry.session_id,
            confirmed: false,
            evidence: String::new(),
            wrote_late: false,
        }
    }
}

/// A strike could not be carried out at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrikeError {
    /// Nobody holds the lock.
    #[error("nobody held {path} for {waited_s:.0} s, so there was nobody to strike")]
    NoHolder {
        /// The lock.
        path: String,
        /// How long was waited.
        waited_s: f64,
    },
    /// ZooKeeper, the database or the replica could not be asked.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// It takes a container engine, and there is none.
    #[error("{0} can only strike a stack in containers")]
    NeedsEngine(&'static str),
}

/// Strikes so far; kept outside of [`inject`] so that they survive its cancellation.
pub type Strikes = Mutex<Vec<Strike>>;

/// Tries per required strike before the injector gives up.
const TRIES_EACH: usize = 8;

/// Injects all faults of a run, in order; each step until it is confirmed often enough or the tries run out. Where
/// the scene wants a late write to be seen, a freeze that led to none is not enough.
///
/// Cancel safe: a frozen holder is resumed.
pub async fn inject(
    scene: &Scene<'_>,
    faults: &Faults,
    rng: &mut StdRng,
    strikes: &Strikes,
) -> Result<(), StrikeError> {
    for (kind, required) in faults.steps() {
        let mut confirmed = 0;
        for _ in 0..required * TRIES_EACH {
            if confirmed == *required {
                break;
            }
            // Not in step with anything else: the moment within the holder's work is what matters.
            tokio::time::sleep(Duration::from_millis(rng.random_range(150..450))).await;
            let strike = match kind {
                FaultKind::ExpireHolder => expire_holder::strike(scene).await?,
                FaultKind::FreezeHolder => freeze_holder::strike(scene).await?,
                kind => return Err(StrikeError::NeedsEngine(kind.name())),
            };
            let enough = strike.wrote_late || !(scene.wants_late_write && *kind == FaultKind::FreezeHolder);
            confirmed += usize::from(strike.confirmed && enough);
            scene.report(&strike);
            strikes.lock().unwrap_or_else(PoisonError::into_inner).push(strike);
        }
    }
    Ok(())
}

/// How many strikes of a kind are confirmed.
pub fn confirmed(strikes: &[Strike], kind: FaultKind) -> usize {
    strikes.iter().filter(|strike| strike.kind == kind && strike.confirmed).count()
}
