//! Ends the ZooKeeper session of whoever holds the lock, in the middle of its critical section.
//!
//! Confirmed means: the token was seen holding just before; the server ended exactly that session; the token's node
//! is gone; later holders have committed (so a late write would be refused); and a token of that session ends in an
//! incident and not in the ledger. A session serves many waiters, so by the time it ends the lock may have passed to
//! the next one in the same session: then that one's token was hit, and is named.

use std::time::{Duration, Instant};

use super::scene::POLL;
use super::{Scene, Strike, StrikeError};
use crate::experiments::FaultKind;

/// An incident is recorded within milliseconds of the loss, on a loaded machine within tenths of a second.
const PROOF_DEADLINE: Duration = Duration::from_millis(1500);
/// When a token that has committed is taken for missed.
const MISSED_AFTER: Duration = Duration::from_millis(300);

pub(super) async fn strike(scene: &Scene<'_>) -> Result<Strike, StrikeError> {
    let holder = scene.fresh_holder().await?;
    let mut strike = Strike::begin(FaultKind::ExpireHolder, &holder);
    let expired = match scene.expire(&holder).await {
        Ok(expired) => expired,
        Err(error) => {
            strike.evidence = format!("the session could not be expired: {error}");
            return Ok(strike);
        }
    };
    if !is_session(&expired.session, holder.entry.session_id) {
        strike.evidence =
            format!("session {} ended, but the holder's was {:#x}", expired.session, holder.entry.session_id);
        return Ok(strike);
    }
    prove(scene, &mut strike).await?;
    Ok(strike)
}

/// Waits until the fate of the struck token is decided, and names it.
async fn prove(scene: &Scene<'_>, strike: &mut Strike) -> Result<(), StrikeError> {
    let aimed_at = strike.token;
    let begun = Instant::now();
    while begun.elapsed() < PROOF_DEADLINE {
        if !scene.still_holds(aimed_at).await? && scene.evidence.later_sold(aimed_at).await? {
            if let Some(hit) = scene.evidence.incident(&strike.instance, aimed_at).await? {
                strike.token = hit.token;
                strike.confirmed = true;
                strike.evidence = format!(
                    "session {:#x} ended while token {} held the lock; {} ({}), no ledger row, later holders sold",
                    strike.session_id, hit.token, hit.kind, hit.reason
                );
                return Ok(());
            }
            if scene.evidence.wrote(aimed_at).await? && begun.elapsed() > MISSED_AFTER {
                strike.evidence = format!("token {aimed_at} had committed before its session ended");
                return Ok(());
            }
        }
        tokio::time::sleep(POLL * 5).await;
    }
    strike.evidence =
        format!("no critical section of the session is known to have been hit (token {aimed_at})");
    Ok(())
}

/// Whether a session id in a reply is this one; it may be a number or hexadecimal text.
fn is_session(said: &serde_json::Value, id: i64) -> bool {
    match said {
        serde_json::Value::Number(number) => number.as_i64() == Some(id),
        serde_json::Value::String(text) => {
            let digits = text.trim_start_matches("0x");
            u64::from_str_radix(digits, 16).is_ok_and(|number| number.cast_signed() == id)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_session;
    use serde_json::json;

    #[test]
    fn a_session_is_recognised_in_either_notation() {
        assert!(is_session(&json!("0x100000abc"), 0x1_0000_0abc));
        assert!(is_session(&json!(4_294_970_044_i64), 0x1_0000_0abc));
        assert!(is_session(&json!("0xffffffffffffffff"), -1));
        assert!(!is_session(&json!("0x1"), 2));
        assert!(!is_session(&json!(null), 0));
    }
}
