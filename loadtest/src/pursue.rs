//! Pursues one request until it is settled: retries with the same key, on the next replica, with
//! backoff and jitter, bounded in attempts and in time.

use std::time::Duration;

use rand::{RngExt as _, rngs::Xoshiro256PlusPlus};
use tokio::time::Instant;

use crate::{
    client::{Answer, Ask, Attempt, Client},
    history::{Closed, Op, Outcome, Record},
};

/// How long and how often to retry.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Attempts at most, the first included.
    pub attempts_max: u32,
    /// No attempt begins after this.
    pub until: Instant,
}

const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// What became of a pursued request.
#[derive(Debug)]
pub struct Pursuit {
    /// Every attempt, in order; at least one.
    pub attempts: Vec<Record>,
}

impl Pursuit {
    /// The last attempt.
    pub fn last(&self) -> &Record {
        &self.attempts[self.attempts.len() - 1]
    }

    /// Whether some attempt may have been applied and none decided since.
    pub fn is_unsettled(&self) -> bool {
        let outcomes = self.attempts.iter().map(Record::outcome);
        let mut unknown = false;
        for outcome in outcomes {
            match outcome {
                Outcome::Accepted | Outcome::OutOfStock => return false,
                Outcome::Unknown => unknown = true,
                Outcome::NotDone { .. } => {}
            }
        }
        unknown
    }
}

/// Sends `ask`, first to host number `home`, and again while the outcome is worth it. A restock is sent
/// once: it has no key. Attempts are numbered from `first`.
///
/// # Errors
/// Only when the history cannot be written.
///
/// # Cancel safety
/// As of [`Client::attempt`]: do not drop it.
pub async fn pursue(
    client: &Client,
    ask: &Ask,
    first: Attempt,
    patience: Patience,
    jitter: &mut Xoshiro256PlusPlus,
) -> Result<Pursuit, Closed> {
    let mut attempts = Vec::with_capacity(1);
    let mut next = first;
    loop {
        let Answer { record, retry_after } = client.attempt(ask, next).await?;
        let outcome = record.outcome();
        attempts.push(record);
        let sent = next.number - first.number + 1;
        if !outcome.wants_retry() || ask.op() == Op::Restock || sent >= patience.attempts_max {
            break;
        }
        let pause = backoff(sent, jitter).max(retry_after.unwrap_or_default().min(BACKOFF_MAX));
        if Instant::now() + pause > patience.until {
            break;
        }
        tokio::time::sleep(pause).await;
        next = Attempt { host: next.host + 1, number: next.number + 1, ..next };
    }
    Ok(Pursuit { attempts })
}

/// The pause after the `sent`-th attempt: doubled each time up to a limit, of which half is chance.
fn backoff(sent: u32, jitter: &mut Xoshiro256PlusPlus) -> Duration {
    let whole = BACKOFF_FIRST.saturating_mul(1 << (sent - 1).min(16)).min(BACKOFF_MAX);
    whole.mul_f64(jitter.random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn the_pause_grows_to_its_limit() {
        let mut jitter = Xoshiro256PlusPlus::seed_from_u64(1);
        for (sent, limit) in [(1, 50), (2, 100), (3, 200), (5, 800), (6, 1000), (40, 1000), (u32::MAX, 1000)]
        {
            let pause = backoff(sent, &mut jitter);
            let limit = Duration::from_millis(limit);
            assert!(pause >= limit / 2 && pause <= limit, "{sent}: {pause:?}");
        }
    }
}
