//! All attempts of one order put together: what the client may claim about a key. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Line, Op, Outcome, Record};

/// What the client may claim about a key after all its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claim {
    /// At least one reply acknowledged the order.
    Accepted,
    /// Decided: refused for lack of stock.
    OutOfStock,
    /// Every attempt was answered, and each said that it placed nothing.
    NotPlaced,
    /// An attempt was not answered and none after it decided: it may stand or not.
    Unknown,
}

/// Everything the history says about one order key.
#[derive(Debug, Clone)]
pub struct KeyHistory {
    /// What was ordered, equal SKUs added up, sorted by SKU.
    pub lines: Vec<Line>,
    /// Sending of the first attempt.
    pub first_sent_at: f64,
    /// End of the attempt that decided, or of the last one.
    pub settled_at: f64,
    /// Ids with which the key was acknowledged; more than one is a fault of the service.
    pub order_ids: BTreeSet<String>,
    /// Whether some reply acknowledged it.
    pub accepted: bool,
    /// The first reply that refused it for lack of stock.
    pub refusal: Option<Record>,
    /// Whether some attempt's outcome is unknown.
    pub unknown: bool,
    /// Trace ids sent with its attempts.
    pub trace_ids: BTreeSet<String>,
    /// How many requests were sent.
    pub attempts: usize,
}

impl KeyHistory {
    /// What the client may claim.
    pub const fn claim(&self) -> Claim {
        if self.accepted {
            Claim::Accepted
        } else if self.refusal.is_some() {
            Claim::OutOfStock
        } else if self.unknown {
            Claim::Unknown
        } else {
            Claim::NotPlaced
        }
    }

    fn new(record: &Record) -> Self {
        Self {
            lines: added_up(&record.lines),
            first_sent_at: record.sent_at,
            settled_at: record.received_at,
            order_ids: BTreeSet::new(),
            accepted: false,
            refusal: None,
            unknown: false,
            trace_ids: BTreeSet::new(),
            attempts: 0,
        }
    }

    fn add(&mut self, record: &Record) {
        let before = self.accepted || self.refusal.is_some();
        self.attempts += 1;
        self.first_sent_at = self.first_sent_at.min(record.sent_at);
        self.trace_ids.extend(record.trace_id.clone());
        let outcome = record.outcome();
        let decides = matches!(outcome, Outcome::Accepted | Outcome::OutOfStock);
        match (before, decides) {
            (false, true) => self.settled_at = record.received_at,
            (true, true) => self.settled_at = self.settled_at.min(record.received_at),
            (false, false) => self.settled_at = self.settled_at.max(record.received_at),
            (true, false) => {}
        }
        match outcome {
            Outcome::Accepted => {
                self.accepted = true;
                self.order_ids.extend(record.order_id.clone());
            }
            Outcome::OutOfStock => {
                if self.refusal.as_ref().is_none_or(|first| record.received_at < first.received_at) {
                    self.refusal = Some(record.clone());
                }
            }
            Outcome::Unknown => self.unknown = true,
            Outcome::NotDone { .. } => {}
        }
    }
}

/// The orders of a history by key. Other operations are left out.
pub fn by_key(records: &[Record]) -> BTreeMap<&str, KeyHistory> {
    let mut keys: BTreeMap<&str, KeyHistory> = BTreeMap::new();
    for record in records.iter().filter(|record| record.op == Op::Order) {
        keys.entry(&record.key).or_insert_with(|| KeyHistory::new(record)).add(record);
    }
    keys
}

/// The lines with equal SKUs added up, sorted by SKU.
fn added_up(lines: &[Line]) -> Vec<Line> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for line in lines {
        *sums.entry(&line.sku).or_default() += line.quantity;
    }
    sums.into_iter().map(|(sku, quantity)| Line::new(sku, quantity)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Placed, test_record};

    fn attempt(n: u32, status: u16, placed: Option<Placed>) -> Record {
        let at = f64::from(n) * 10.0;
        Record { attempt: n, status, placed, sent_at: at, received_at: at + 5.0, ..test_record() }
    }

    fn claim(records: &[Record]) -> Claim {
        by_key(records)["k"].claim()
    }

    #[test]
    fn a_later_not_placed_does_not_settle_an_earlier_silence() {
        let not_placed = attempt(2, 503, Some(Placed::NotPlaced));
        assert_eq!(claim(&[attempt(1, 0, None), not_placed.clone()]), Claim::Unknown);
        assert_eq!(claim(&[not_placed]), Claim::NotPlaced);
    }

    #[test]
    fn a_decision_settles_everything_before_it() {
        let records = [attempt(1, 0, None), attempt(2, 201, None)];
        assert_eq!(claim(&records), Claim::Accepted);
        let key = &by_key(&records)["k"];
        assert!((key.first_sent_at - 10.0).abs() < 1e-9 && (key.settled_at - 25.0).abs() < 1e-9);
    }

    #[test]
    fn equal_skus_are_added_up() {
        let lines = [Line::new("b", 1), Line::new("a", 2), Line::new("b", 3)];
        assert_eq!(added_up(&lines), [Line::new("a", 2), Line::new("b", 4)]);
    }
}
