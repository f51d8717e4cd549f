//! The figures of a run, computed from its history alone. Pure.
//!
//! Promises: exact counts and exact percentiles (nearest rank), because every request has a record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    campaign::Ended,
    history::{Claim, KeyHistory, Op, Outcome, Record, by_key},
};

/// What the run was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Name of the run.
    pub run: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of every user's plan.
    pub seed: u64,
    /// Users at once.
    pub users: usize,
    /// Replicas.
    pub hosts: Vec<String>,
    /// SKUs ordered.
    pub skus: Vec<String>,
    /// Units of each SKU at the start.
    pub stock: i64,
    /// Why it ended.
    pub ended: Ended,
}

/// Orders by key, after the final pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Acknowledged.
    pub accepted: u64,
    /// Refused for lack of stock.
    pub out_of_stock: u64,
    /// Given up, and nothing placed.
    pub failed: u64,
    /// Never settled.
    pub unknown: u64,
}

/// Percentiles of some durations, in milliseconds; all `null` where there were none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half were at most this long.
    pub p50: Option<f64>,
    /// 95 of 100 were at most this long.
    pub p95: Option<f64>,
    /// 99 of 100 were at most this long.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Percentiles {
    /// Of these durations, by nearest rank.
    pub fn of(mut durations: Vec<f64>) -> Self {
        durations.sort_by(f64::total_cmp);
        let count = durations.len();
        let rank = |percent: usize| (count * percent).div_ceil(100).checked_sub(1).map(|at| durations[at]);
        Self { p50: rank(50), p95: rank(95), p99: rank(99), max: rank(100) }
    }
}

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What the run was.
    #[serde(flatten)]
    pub about: About,
    /// Sending of the first request, milliseconds since the Unix epoch.
    pub started_at: f64,
    /// From the first order sent to the last one settled, seconds.
    pub wall_s: f64,
    /// Requests sent, by operation; each has a record.
    pub requests: BTreeMap<String, u64>,
    /// Requests after the first with the same key and operation.
    pub retries: u64,
    /// Requests without a complete reply.
    pub no_reply: u64,
    /// Orders by key.
    pub orders: Orders,
    /// Units acknowledged, by SKU.
    pub units_accepted: BTreeMap<String, i64>,
    /// Accepted orders per second, from the first order sent to the last acknowledgement.
    pub orders_per_s: f64,
    /// From sending the first attempt of an accepted order to its acknowledgement.
    pub order_ms: Percentiles,
    /// As the replies of accepted orders tell it.
    pub lock_wait_ms: Percentiles,
    /// As the replies of accepted orders tell it.
    pub lock_hold_ms: Percentiles,
    /// Accepted orders by the replica that decided.
    pub instances: BTreeMap<String, u64>,
    /// Requests by the problem that answered them.
    pub codes: BTreeMap<String, u64>,
    /// Cancels acknowledged.
    pub cancelled: u64,
    /// Units of acknowledged restocks.
    pub restocked: i64,
}

impl Summary {
    /// The figures of a history.
    pub fn of(about: About, records: &[Record]) -> Self {
        let keys = by_key(records);
        let mut requests = BTreeMap::new();
        let mut codes = BTreeMap::new();
        for record in records {
            *requests.entry(record.op.as_str().to_owned()).or_default() += 1;
            if let Some(code) = &record.code {
                *codes.entry(code.clone()).or_default() += 1;
            }
        }
        let first_replies = first_acknowledgements(records);
        let of_replies = |value: fn(&Record) -> Option<f64>| {
            Percentiles::of(first_replies.values().filter_map(|record| value(record)).collect())
        };
        let mut instances = BTreeMap::new();
        for instance in first_replies.values().filter_map(|record| record.instance.clone()) {
            *instances.entry(instance).or_default() += 1;
        }
        let accepted = || keys.values().filter(|key| key.claim() == Claim::Accepted);
        let mut units_accepted = BTreeMap::new();
        for line in accepted().flat_map(|key| &key.lines) {
            *units_accepted.entry(line.sku.clone()).or_default() += line.quantity;
        }
        let begin = earliest(keys.values());
        let accepted_s = seconds(begin, accepted().map(|key| key.settled_at));
        let orders = count_claims(keys.values());
        let done = |op| records.iter().filter(move |r| r.op == op && r.outcome() == Outcome::Accepted);
        let mut cancelled: Vec<_> = done(Op::Cancel).map(|record| &record.order_id).collect();
        cancelled.sort();
        cancelled.dedup();
        Self {
            about,
            started_at: records.iter().map(|record| record.sent_at).reduce(f64::min).unwrap_or_default(),
            wall_s: seconds(begin, keys.values().map(|key| key.settled_at)),
            requests,
            retries: retries(records),
            no_reply: records.iter().filter(|record| record.status == 0).count() as u64,
            orders,
            units_accepted,
            orders_per_s: if accepted_s > 0.0 { orders.accepted as f64 / accepted_s } else { 0.0 },
            order_ms: Percentiles::of(accepted().map(|key| key.settled_at - key.first_sent_at).collect()),
            lock_wait_ms: of_replies(|record| record.wait_ms),
            lock_hold_ms: of_replies(|record| record.hold_ms),
            instances,
            codes,
            cancelled: cancelled.len() as u64,
            restocked: done(Op::Restock).flat_map(|record| &record.lines).map(|line| line.quantity).sum(),
        }
    }
}

fn count_claims<'a>(keys: impl Iterator<Item = &'a KeyHistory>) -> Orders {
    let mut orders = Orders::default();
    for key in keys {
        match key.claim() {
            Claim::Accepted => orders.accepted += 1,
            Claim::OutOfStock => orders.out_of_stock += 1,
            Claim::NotPlaced => orders.failed += 1,
            Claim::Unknown => orders.unknown += 1,
        }
    }
    orders
}

/// Of each accepted key the reply that came first: a replayed one repeats its figures.
fn first_acknowledgements(records: &[Record]) -> BTreeMap<&str, &Record> {
    let mut first: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records.iter().filter(|r| r.op == Op::Order && r.outcome() == Outcome::Accepted) {
        let kept = first.entry(&record.key).or_insert(record);
        if record.received_at < kept.received_at {
            *kept = record;
        }
    }
    first
}

fn retries(records: &[Record]) -> u64 {
    let mut asked: Vec<_> = records.iter().map(|record| (record.op, record.key.as_str())).collect();
    asked.sort_unstable();
    asked.dedup();
    (records.len() - asked.len()) as u64
}

fn earliest<'a>(keys: impl Iterator<Item = &'a KeyHistory>) -> f64 {
    keys.map(|key| key.first_sent_at).fold(f64::INFINITY, f64::min)
}

fn seconds(begin: f64, ends: impl Iterator<Item = f64>) -> f64 {
    ends.fold(None, |latest: Option<f64>, end| Some(latest.map_or(end, |latest| latest.max(end))))
        .map_or(0.0, |end| (end - begin) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Placed, test_record};

    fn about() -> About {
        About {
            run: "r".to_owned(),
            scenario: "oversell".to_owned(),
            seed: 1,
            users: 1,
            hosts: Vec::new(),
            skus: vec!["sku-1".to_owned()],
            stock: 1,
            ended: Ended::SoldOut,
        }
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let hundred = Percentiles::of((1..=100).rev().map(f64::from).collect());
        let wanted = Percentiles { p50: Some(50.0), p95: Some(95.0), p99: Some(99.0), max: Some(100.0) };
        assert_eq!(hundred, wanted);
        assert_eq!(Percentiles::of(vec![3.0]).p50, Some(3.0));
        assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    }

    #[test]
    fn a_retried_order_counts_once_and_from_its_first_attempt() {
        let silent = Record { sent_at: 1000.0, received_at: 2000.0, ..test_record() };
        let accepted = Record {
            attempt: 2,
            sent_at: 2100.0,
            received_at: 3000.0,
            status: 201,
            instance: Some("a".to_owned()),
            wait_ms: Some(7.0),
            ..test_record()
        };
        let replay = Record { attempt: 3, sent_at: 3100.0, received_at: 3200.0, ..accepted.clone() };
        let refused = Record {
            key: "other".to_owned(),
            sent_at: 1000.0,
            received_at: 5000.0,
            status: 409,
            code: Some("out-of-stock".to_owned()),
            placed: Some(Placed::NotPlaced),
            ..test_record()
        };
        let summary = Summary::of(about(), &[silent, accepted, replay, refused]);
        let wanted = Orders { accepted: 1, out_of_stock: 1, failed: 0, unknown: 0 };
        assert_eq!(summary.orders, wanted);
        assert_eq!((summary.retries, summary.no_reply), (2, 1));
        assert_eq!(summary.order_ms.p99, Some(2000.0));
        assert_eq!(summary.lock_wait_ms.max, Some(7.0));
        assert_eq!(summary.instances["a"], 1);
        assert!((summary.orders_per_s - 0.5).abs() < 1e-9 && (summary.wall_s - 4.0).abs() < 1e-9);
        assert_eq!(summary.units_accepted["sku-1"], 1);
    }

    #[test]
    fn an_empty_history_has_no_figures() {
        let summary = Summary::of(about(), &[]);
        assert_eq!(summary.orders, Orders::default());
        assert!(summary.orders_per_s.abs() < 1e-9);
    }
}
