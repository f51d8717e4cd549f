//! The final pass: sends every key whose outcome is unknown again, with the same key, until it is
//! settled or the time is up. What stays unknown then is a fact of the history, not an error.

use std::{sync::Arc, time::Duration};

use rand::{SeedableRng as _, rngs::Xoshiro256PlusPlus};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use crate::{
    campaign::Unsettled,
    client::Client,
    history::Closed,
    pursue::{Patience, pursue},
};

const AT_ONCE_MAX: usize = 16;

/// Settles what it can within `time` plus one attempt's timeout; returns how many keys stayed unknown.
///
/// # Errors
/// Only when the history cannot be written.
///
/// # Cancel safety
/// The attempts under way are dropped without a record.
pub async fn settle(
    client: &Client,
    unsettled: Vec<Unsettled>,
    time: Duration,
    seed: u64,
) -> Result<usize, Closed> {
    let patience = Patience { attempts_max: u32::MAX, until: Instant::now() + time };
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    let mut tasks = JoinSet::new();
    for (index, Unsettled { ask, next }) in unsettled.into_iter().enumerate() {
        let (client, places) = (client.clone(), Arc::clone(&places));
        let mut jitter = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(index as u64));
        tasks.spawn(async move {
            let place = places.acquire_owned().await;
            let settled = if Instant::now() < patience.until {
                let pursuit = pursue(&client, &ask, next, patience, &mut jitter).await?;
                !pursuit.last().outcome().wants_retry()
            } else {
                false
            };
            drop(place);
            Ok(settled)
        });
    }
    let mut left = 0;
    while let Some(task) = tasks.join_next().await {
        match task {
            Ok(settled) => left += usize::from(!settled?),
            Err(panic) if panic.is_panic() => std::panic::resume_unwind(panic.into_panic()),
            Err(_) => left += 1,
        }
    }
    Ok(left)
}
