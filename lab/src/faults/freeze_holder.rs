//! Stops the process that holds the lock (SIGSTOP) for longer than its session, then lets it go on.
//!
//! Confirmed means: when it stood still it held the lock, had no ledger row for its token and no transaction open, so
//! its write was still to come; its node vanished while it stood still, and not before the server can have expired
//! it; it stood still for longer than the negotiated session timeout, and others sold meanwhile. What its write then
//! does is evidence, not a condition.

use std::time::{Duration, Instant};

use loadtest::history::now_ms;
use stack::Child;

use super::negotiated;
use super::scene::{Holder, POLL};
use super::{Scene, SceneError, Strike, StrikeError};
use crate::experiments::FaultKind;

/// Slack for the server's expiry (rounded up to its ticks) and for a loaded machine.
const SLACK: Duration = Duration::from_secs(4);

/// How long after it goes on a holder's write can be expected: its work is over by then.
const AFTERMATH: Duration = Duration::from_secs(2);

pub(super) async fn strike(scene: &Scene<'_>) -> Result<Strike, StrikeError> {
    let holder = scene.fresh_holder().await?;
    // Into the middle of its work: it has read what it needs, and has not begun to write.
    tokio::time::sleep(scene.work / 2).await;
    let mut strike = Strike::begin(FaultKind::FreezeHolder, &holder);
    let frozen = Frozen::stop(&holder.target.child);
    let missed = stand_still(scene, &holder, &frozen).await?;
    let stood = frozen.since.elapsed();
    drop(frozen);
    strike.until_ms = now_ms();
    if let Some(missed) = missed {
        strike.evidence = missed;
        return Ok(strike);
    }
    let then = aftermath(scene, &mut strike).await?;
    strike.confirmed = true;
    strike.evidence = format!(
        "stood still for {} ms holding token {}, its session expired meanwhile and others sold; {then}",
        stood.as_millis(),
        strike.token,
    );
    Ok(strike)
}

/// Keeps it frozen until its session is gone and others have sold; says what was missed, if anything.
async fn stand_still(
    scene: &Scene<'_>,
    holder: &Holder,
    frozen: &Frozen,
) -> Result<Option<String>, SceneError> {
    let token = holder.entry.token;
    if !frozen.child.is_stopped() {
        return Ok(Some("the process did not stop".into()));
    }
    if !scene.still_holds(token).await? {
        return Ok(Some(format!("token {token} had left before the process stood still")));
    }
    if scene.evidence.wrote(token).await? {
        return Ok(Some(format!("token {token} had committed before the process stood still")));
    }
    if scene.evidence.in_transaction(&holder.instance).await? {
        return Ok(Some(format!("token {token} was in the middle of its transaction")));
    }
    let Some(timeout) = negotiated::timeout_of(scene.zookeeper, holder.entry.session_id).await else {
        return Ok(Some(format!("no server knows session {:#x}", holder.entry.session_id)));
    };
    while scene.still_holds(token).await? {
        if frozen.since.elapsed() > timeout * 2 + SLACK {
            return Ok(Some(format!(
                "the session had not expired after {} s",
                frozen.since.elapsed().as_secs()
            )));
        }
        tokio::time::sleep(POLL * 5).await;
    }
    // The last proof of life may be a third of the timeout old; a node gone sooner was released, not expired.
    if frozen.since.elapsed() < timeout / 2 {
        return Ok(Some(format!("token {token} was being released when the process stood still")));
    }
    let wanted = Instant::now() + SLACK;
    while frozen.since.elapsed() <= timeout || !scene.evidence.later_sold(token).await? {
        if Instant::now() > wanted {
            return Ok(Some("nobody sold anything while the holder stood still".into()));
        }
        tokio::time::sleep(POLL * 5).await;
    }
    Ok((!frozen.child.is_stopped()).then(|| "something else resumed the process".into()))
}

/// What became of the late write.
async fn aftermath(scene: &Scene<'_>, strike: &mut Strike) -> Result<String, SceneError> {
    let begun = Instant::now();
    while begun.elapsed() < AFTERMATH {
        if scene.evidence.wrote(strike.token).await? {
            strike.wrote_late = true;
            return Ok("then it wrote over what they had sold".into());
        }
        if let Some(incident) = scene.evidence.incident(&strike.instance, strike.token).await?
            && incident.token == strike.token
        {
            return Ok(format!("then its write was refused: {} ({})", incident.kind, incident.reason));
        }
        tokio::time::sleep(POLL * 5).await;
    }
    Ok("what it did then is not known".into())
}

/// A process that stands still; it goes on when this is dropped, whatever happens.
struct Frozen {
    child: Child,
    since: Instant,
}

impl Frozen {
    fn stop(child: &Child) -> Self {
        let since = Instant::now();
        child.pause();
        Self { child: child.clone(), since }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.child.resume();
    }
}
