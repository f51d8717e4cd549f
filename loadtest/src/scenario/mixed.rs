//! One planned action per step: orders of several lines, duplicates on purpose, cancels, reads,
//! restocks.

use rand::{SeedableRng as _, rngs::Xoshiro256PlusPlus};

use super::User;
use crate::{
    campaign::Campaign,
    client::{Ask, Attempt},
    history::{Closed, Record},
    plan::{Action, Copy, PlannedOrder},
    pursue::{Patience, Pursuit, pursue},
};

/// Takes the next planned action.
pub(super) async fn step(user: &mut User, campaign: &Campaign) -> Result<Vec<Record>, Closed> {
    match user.plan.next_action() {
        Action::Order(order) => place(user, campaign, order, None).await,
        Action::Duplicate(order, copy) => place(user, campaign, order, Some(copy)).await,
        Action::Cancel { pick, twice } => cancel(user, campaign, pick, twice).await,
        Action::ReadStock(sku) => read(user, campaign, format!("/stock/{sku}")).await,
        Action::ReadOrder { pick } => {
            let path = match picked(user, pick) {
                Some((_, id)) => format!("/orders/{id}"),
                None => "/stock".to_owned(),
            };
            read(user, campaign, path).await
        }
        Action::Restock(line) => {
            let ask = Ask::Restock { key: fresh_key(), line };
            Ok(user.pursue(campaign, &ask).await?.attempts)
        }
    }
}

async fn place(
    user: &mut User,
    campaign: &Campaign,
    order: PlannedOrder,
    copy: Option<Copy>,
) -> Result<Vec<Record>, Closed> {
    let ask = Ask::Order { key: order.key.to_string(), lines: order.lines };
    let patience = campaign.patience();
    let first = Attempt { user: user.number, host: user.number, number: 1 };
    let pursuit = match copy {
        None => pursue(campaign.client(), &ask, first, patience, &mut user.jitter).await?,
        Some(copy) => twice(campaign, &ask, first, patience, user, copy).await?,
    };
    campaign.count(&ask, &pursuit);
    user.remember(&pursuit);
    Ok(pursuit.attempts)
}

/// Sends the same key a second time, to the next replica. Both pursuits count as one: what settles the
/// one settles the other.
async fn twice(
    campaign: &Campaign,
    ask: &Ask,
    first: Attempt,
    patience: Patience,
    user: &mut User,
    copy: Copy,
) -> Result<Pursuit, Closed> {
    let second = Attempt { host: first.host + 1, number: patience.attempts_max + 1, ..first };
    let mut jitter = Xoshiro256PlusPlus::from_rng(&mut user.jitter);
    let (original, duplicate) = match copy {
        Copy::Later => {
            let original = pursue(campaign.client(), ask, first, patience, &mut user.jitter).await?;
            (original, pursue(campaign.client(), ask, second, patience, &mut jitter).await?)
        }
        Copy::AtOnce => {
            let (original, duplicate) = tokio::join!(
                pursue(campaign.client(), ask, first, patience, &mut user.jitter),
                pursue(campaign.client(), ask, second, patience, &mut jitter),
            );
            (original?, duplicate?)
        }
    };
    let mut attempts = original.attempts;
    attempts.extend(duplicate.attempts);
    Ok(Pursuit { attempts })
}

async fn cancel(
    user: &mut User,
    campaign: &Campaign,
    pick: usize,
    twice: bool,
) -> Result<Vec<Record>, Closed> {
    let Some((key, order_id)) = picked(user, pick) else {
        return read(user, campaign, "/stock".to_owned()).await;
    };
    let ask = Ask::Cancel { key, order_id };
    let mut attempts = user.pursue(campaign, &ask).await?.attempts;
    if twice {
        attempts.extend(user.pursue(campaign, &ask).await?.attempts);
    }
    Ok(attempts)
}

async fn read(user: &mut User, campaign: &Campaign, path: String) -> Result<Vec<Record>, Closed> {
    let ask = Ask::Read { key: fresh_key(), path };
    Ok(user.pursue(campaign, &ask).await?.attempts)
}

fn picked(user: &User, pick: usize) -> Option<(String, String)> {
    let orders = user.accepted.len();
    (orders > 0).then(|| user.accepted[pick % orders].clone())
}

fn fresh_key() -> String {
    uuid::Uuid::new_v4().to_string()
}
