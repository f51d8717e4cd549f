//! Faults of a compose stack, through its container engine.
//!
//! A strike counts only if it is *confirmed*: what was broken showed (a session lost and built anew, another leader, a
//! server that noticed that it was alone), and there was still something to sell when it was mended. A holder that is
//! killed, frozen or cut off has to hold the lock when it is: the engine takes a moment, so another one is tried if not. Whatever is broken
//! is mended, also when the injector is dropped midway. Nothing here judges the outcome; that is the audit's work.

mod replicas;
mod servers;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use loadtest::history::now_ms;
use stack::{ComposeProject, Container, EngineError, Undo};
use zk_locks::{Inspector, LockEntry};

use super::{SceneError, Strike, StrikeError, Strikes};
use crate::experiments::{FaultKind, Faults, HOT_SKU};
use crate::progress::Progress;

const POLL: Duration = Duration::from_millis(100);
/// An engine is slow, a critical section is not: as many moments may be missed.
const TRIES: usize = 30;
/// What a release may take that was under way when its holder was broken.
const UNDER_WAY: Duration = Duration::from_millis(300);
const HOLDER_DEADLINE: Duration = Duration::from_secs(10);
/// The session timeout + 2 s, and what a restart and a noisy machine add.
const SHOWS: Duration = Duration::from_secs(40);

/// Where faults strike.
#[derive(Debug)]
pub struct EngineScene<'a> {
    /// The stack.
    pub project: &'a ComposeProject,
    /// A connection to its ZooKeeper.
    pub inspector: &'a Inspector,
    /// The lock whose holder is struck.
    pub lock_path: String,
    /// The one address of its replicas.
    pub entry: String,
    /// For how long something stays broken: longer than a session lives.
    pub broken: Duration,
    /// Opens the fault endpoints, if there are any.
    pub faults_token: Option<String>,
    /// Where to say what happens.
    pub progress: &'a Progress,
}

/// Why a strike proves nothing.
#[derive(Debug, thiserror::Error)]
enum Missed {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Strike(#[from] StrikeError),
    #[error("{0}")]
    Because(String),
}

/// Injects each fault once, in order; after each it waits until all replicas are ready again.
///
/// # Cancel safety
/// What is broken is mended.
pub async fn inject(scene: &EngineScene<'_>, faults: &Faults, strikes: &Strikes) -> Result<(), StrikeError> {
    for (kind, _) in faults.steps() {
        let strike = scene.strike(*kind).await?;
        let how = if strike.confirmed { "confirmed" } else { "missed" };
        scene.progress.say(&format!("{} {how}: {}", kind.name(), strike.evidence));
        strikes.lock().unwrap_or_else(PoisonError::into_inner).push(strike);
    }
    Ok(())
}

/// At whoever holds the lock, now.
fn aim(strike: &mut Strike, holder: &LockEntry) {
    strike.at_ms = now_ms();
    strike.instance = holder.instance.clone().unwrap_or_default();
    (strike.token, strike.session_id) = (holder.token, holder.session_id);
}

impl EngineScene<'_> {
    async fn strike(&self, kind: FaultKind) -> Result<Strike, StrikeError> {
        let mut strike = Strike {
            kind,
            at_ms: 0.0,
            until_ms: 0.0,
            instance: String::new(),
            url: self.entry.clone(),
            token: 0,
            session_id: 0,
            confirmed: false,
            evidence: String::new(),
            wrote_late: false,
        };
        aim(&mut strike, &self.holder().await?);
        let struck = self.break_and_mend(&mut strike).await;
        strike.until_ms = now_ms();
        let settled = match struck {
            Ok(evidence) => self.settled().await.map(|()| evidence),
            Err(missed) => Err(missed),
        };
        match settled {
            Ok(evidence) => (strike.confirmed, strike.evidence) = (true, evidence),
            Err(missed) => strike.evidence = missed.to_string(),
        }
        Ok(strike)
    }

    async fn break_and_mend(&self, strike: &mut Strike) -> Result<String, Missed> {
        match strike.kind {
            FaultKind::ExpireHolder => replicas::expire(self, &self.replica(&strike.instance).await?).await,
            FaultKind::FreezeHolder => replicas::freeze(self, strike).await,
            FaultKind::KillHolder => replicas::kill(self, strike).await,
            FaultKind::CutHolder => replicas::cut(self, strike).await,
            FaultKind::RollingRestart => replicas::restart_all(self).await,
            FaultKind::KillLeader => servers::kill_leader(self).await,
            FaultKind::CutServer => servers::cut_off_its_peers(self).await,
            FaultKind::RestartPostgres => servers::restart_postgres(self).await,
        }
    }

    /// Whoever holds the lock, as soon as somebody does.
    async fn holder(&self) -> Result<LockEntry, StrikeError> {
        let begun = Instant::now();
        loop {
            let asked = self.inspector.holder(&self.lock_path).await;
            let failed = |source| SceneError::Lock { path: self.lock_path.clone(), source };
            if let Some(entry) = asked.map_err(failed)? {
                return Ok(entry);
            }
            let waited_s = begun.elapsed().as_secs_f64();
            if begun.elapsed() > HOLDER_DEADLINE {
                return Err(StrikeError::NoHolder { path: self.lock_path.clone(), waited_s });
            }
            tokio::time::sleep(super::scene::POLL).await;
        }
    }

    /// Breaks the replica that holds the lock, one after the other until one was broken while it held it.
    async fn hit(
        &self,
        strike: &mut Strike,
        breaks: impl AsyncFn(&Container) -> Result<Undo, EngineError>,
    ) -> Result<(Container, Undo), Missed> {
        for _ in 0..TRIES {
            let holder = self.holder().await?;
            let replica = self.replica(holder.instance.as_deref().unwrap_or_default()).await?;
            aim(strike, &holder);
            let undo = breaks(&replica).await?;
            let held = self.holder().await?;
            if held.instance == holder.instance {
                tokio::time::sleep(UNDER_WAY).await;
                if self.holder().await?.token == held.token {
                    (strike.token, strike.session_id) = (held.token, held.session_id);
                    return Ok((replica, undo));
                }
            }
            undo.now().await?;
            self.until("ready again", &replica, async || replicas::ready(&replica).await).await?;
        }
        Err(Missed::Because(format!("{TRIES} holders had given the lock back before they were struck")))
    }

    /// The container of an instance: named after its host name, the first digits of its id.
    async fn replica(&self, instance: &str) -> Result<Container, Missed> {
        let host = instance.split('-').next().unwrap_or_default();
        let all = self.project.containers("order-service").await?;
        let found = all.into_iter().find(|container| !host.is_empty() && container.id().starts_with(host));
        found.ok_or_else(|| Missed::Because(format!("the holder {instance:?} is no replica of this stack")))
    }

    /// After the fault: there is still something to sell, and all replicas are ready.
    async fn settled(&self) -> Result<(), Missed> {
        if self.on_hand().await? == 0 {
            return Err(Missed::Because("everything was sold before it was mended; more --stock?".into()));
        }
        for replica in self.project.containers("order-service").await? {
            self.until("ready again", &replica, async || replicas::ready(&replica).await).await?;
        }
        Ok(())
    }

    async fn on_hand(&self) -> Result<u64, Missed> {
        let url = format!("{}/stock/{HOT_SKU}", self.entry);
        let begun = Instant::now();
        loop {
            let asked = async {
                let answer =
                    reqwest::get(&url).await?.error_for_status()?.json::<serde_json::Value>().await?;
                Ok::<_, reqwest::Error>(answer["on_hand"].as_u64())
            };
            match asked.await {
                Ok(Some(units)) => return Ok(units),
                failed if begun.elapsed() > SHOWS => {
                    return Err(Missed::Because(format!("{url} cannot be read: {failed:?}")));
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Waits until something shows of a container.
    async fn until(
        &self,
        what: &str,
        container: &Container,
        mut shows: impl AsyncFnMut() -> Result<bool, EngineError>,
    ) -> Result<(), Missed> {
        let begun = Instant::now();
        while !shows().await? {
            if begun.elapsed() > SHOWS {
                let late = SHOWS.as_secs();
                return Err(Missed::Because(format!("{}: not {what} within {late} s", container.name())));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}
