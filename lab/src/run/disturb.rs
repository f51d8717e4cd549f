//! Load and faults at the same time, with a line of progress every second.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::MissedTickBehavior;

use super::RunError;
use super::load::Load;
use crate::experiments::{Experiment, HOT_SKU};
use crate::faults::StrikeError;
use crate::progress::Progress;

const TICK: Duration = Duration::from_secs(1);

/// Waits for the load to end, while faults strike. Says why the faults were cut short, if they were.
pub(super) async fn until_load_ends(
    load: &Load,
    experiment: &Experiment,
    injected: impl Future<Output = Result<(), StrikeError>>,
    watched: (&PgPool, &Progress),
) -> Result<Option<String>, RunError> {
    let ended = load.ended(experiment);
    let watched = (watched.0, watched.1, load.begun_ms());
    tokio::pin!(ended, injected);
    let mut injection: Option<Result<(), StrikeError>> = None;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ended = &mut ended => {
                ended?;
                break;
            }
            result = &mut injected, if injection.is_none() => match result {
                Err(StrikeError::Scene(error)) => return Err(error.into()),
                result => injection = Some(result),
            },
            _ = tick.tick() => say(experiment, watched).await?,
        }
    }
    say(experiment, watched).await?;
    Ok(match injection {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(error.to_string()),
        None => Some("the load ended before all faults had struck".into()),
    })
}

async fn say(
    experiment: &Experiment,
    (database, progress, begun_ms): (&PgPool, &Progress, f64),
) -> Result<(), RunError> {
    let (on_hand, sold): (Option<i64>, i64) = sqlx::query_as(
        "select (select on_hand from stock where sku = $1), \
         (select count(*) from ledger where sku = $1 and kind = 'order' and at >= to_timestamp($2))",
    )
    .bind(HOT_SKU)
    .bind(begun_ms / 1000.0)
    .fetch_one(database)
    .await?;
    let stock = on_hand.map_or_else(|| "–".to_owned(), |units| units.to_string());
    progress
        .say(&format!("{}: stock {stock} of {}, orders accepted {sold}", experiment.name, experiment.stock));
    Ok(())
}
