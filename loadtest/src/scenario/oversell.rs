//! One order on one SKU per step.

use super::User;
use crate::{
    campaign::Campaign,
    client::Ask,
    history::{Closed, Record},
};

/// Places the next order and pursues it.
pub(super) async fn step(user: &mut User, campaign: &Campaign) -> Result<Vec<Record>, Closed> {
    let order = user.plan.next_order();
    let ask = Ask::Order { key: order.key.to_string(), lines: order.lines };
    Ok(user.pursue(campaign, &ask).await?.attempts)
}
