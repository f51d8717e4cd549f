//! The scenarios as goose runs them: each user is a goose user, each step a goose transaction, each
//! attempt a request in goose's own statistics.

mod mixed;
mod oversell;

use std::{sync::Arc, time::Duration};

use goose::prelude::*;
use rand::{SeedableRng as _, rngs::Xoshiro256PlusPlus};

use crate::{
    campaign::{Campaign, Ended},
    client::{Ask, Attempt},
    history::{Closed, Outcome, Record},
    plan::UserPlan,
    pursue::{Pursuit, pursue},
};

/// Which scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A burst of orders on one SKU until it is sold out, then the tail.
    Oversell,
    /// Orders of several lines, duplicates, cancels, reads and restocks.
    Mixed,
}

impl Kind {
    /// The name on the command line and in summaries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversell => "oversell",
            Self::Mixed => "mixed",
        }
    }
}

/// What every user's plan is made from.
#[derive(Debug, Clone)]
pub struct Plans {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the run.
    pub run: String,
    /// SKUs to order; at least one.
    pub skus: Vec<String>,
    /// Units per line at most.
    pub quantity_max: i64,
}

/// A user's state between its steps.
#[derive(Clone)]
struct User {
    number: usize,
    plan: UserPlan,
    jitter: Xoshiro256PlusPlus,
    /// Key and id of its accepted orders.
    accepted: Vec<(String, String)>,
}

impl User {
    fn new(plans: &Plans, number: usize) -> Self {
        let Plans { seed, run, skus, quantity_max } = plans;
        Self {
            number,
            plan: UserPlan::new(*seed, run, number, skus, *quantity_max),
            jitter: Xoshiro256PlusPlus::seed_from_u64(seed ^ (number as u64).rotate_left(32)),
            accepted: Vec::new(),
        }
    }

    /// Pursues one request from the user's home replica and has it counted.
    async fn pursue(&mut self, campaign: &Campaign, ask: &Ask) -> Result<Pursuit, Closed> {
        let first = Attempt { user: self.number, host: self.number, number: 1 };
        let pursuit = pursue(campaign.client(), ask, first, campaign.patience(), &mut self.jitter).await?;
        campaign.count(ask, &pursuit);
        Ok(pursuit)
    }

    /// Remembers an accepted order for later cancels and reads.
    fn remember(&mut self, pursuit: &Pursuit) {
        let accepted = pursuit.attempts.iter().find(|record| record.outcome() == Outcome::Accepted);
        if let Some(Record { key, order_id: Some(id), .. }) = accepted {
            self.accepted.push((key.clone(), id.clone()));
        }
    }
}

/// How long a user that has nothing to do waits before it looks whether goose calls it back.
const IDLE: Duration = Duration::from_millis(50);

/// The goose scenario.
pub(crate) fn scenario(kind: Kind, campaign: &Arc<Campaign>, plans: &Arc<Plans>) -> Scenario {
    let (campaign, plans) = (Arc::clone(campaign), Arc::clone(plans));
    let function: TransactionFunction = Arc::new(move |user| {
        let (campaign, plans) = (Arc::clone(&campaign), Arc::clone(&plans));
        Box::pin(async move { turn(kind, &campaign, &plans, user).await })
    });
    Scenario::new(kind.as_str()).register_transaction(Transaction::new(function).set_name("step"))
}

/// One call by goose: a step, or a short wait once the run is over.
async fn turn(kind: Kind, campaign: &Campaign, plans: &Plans, goose: &mut GooseUser) -> TransactionResult {
    if goose::is_killswitch_triggered() {
        campaign.stop(Ended::Interrupted);
    }
    if !campaign.take_turn() {
        goose::trigger_killswitch("the run is over");
        tokio::time::sleep(IDLE).await;
        return Ok(());
    }
    let number = goose.weighted_users_index;
    if goose.get_session_data::<User>().is_none() {
        goose.set_session_data(User::new(plans, number));
    }
    let user = goose.get_session_data_unchecked_mut::<User>();
    let done = match kind {
        Kind::Oversell => oversell::step(user, campaign).await,
        Kind::Mixed => mixed::step(user, campaign).await,
    };
    campaign.finish_step();
    let Ok(records) = done else {
        campaign.stop(Ended::History);
        return Ok(());
    };
    for record in &records {
        tell(goose, record).await?;
    }
    Ok(())
}

/// Enters an attempt into goose's statistics; a refusal for lack of stock is an answer, not a failure.
async fn tell(goose: &mut GooseUser, record: &Record) -> TransactionResult {
    let success = matches!(record.outcome(), Outcome::Accepted | Outcome::OutOfStock);
    let millis = (record.received_at - record.sent_at).max(0.0);
    let error = record.error.as_deref().or(record.code.as_deref());
    goose
        .record_custom_request_duration(
            "HTTP",
            record.op.as_str(),
            Duration::from_secs_f64(millis / 1e3),
            success,
            Some(record.status),
            error,
        )
        .await
}
