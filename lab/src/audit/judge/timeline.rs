//! The stock of each SKU over time, as its ledger tells it.

use std::collections::BTreeMap;

use crate::audit::facts::{Facts, Kind, LedgerRow};

/// Ledger rows between two settings of the stock.
#[derive(Debug)]
pub(super) struct Epoch<'a> {
    /// Units at its start.
    pub(super) start: i64,
    /// What changed, the setting left out.
    pub(super) rows: Vec<&'a LedgerRow>,
    /// Units at its end: what the next setting found, or what is there now.
    pub(super) end: i64,
}

/// One SKU.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    pub(super) sku: &'a str,
    /// Units now; none if the SKU has no row.
    pub(super) on_hand: Option<i64>,
    /// Its ledger, in order.
    pub(super) rows: Vec<&'a LedgerRow>,
    /// No row up to number `i` is younger than `latest_until[i]`. Times may jitter against numbers.
    latest_until: Vec<f64>,
    /// No row from number `i` on is older than `earliest_from[i]`.
    earliest_from: Vec<f64>,
}

impl<'a> Timeline<'a> {
    fn new(sku: &'a str, on_hand: Option<i64>, rows: Vec<&'a LedgerRow>) -> Self {
        let mut earliest_from: Vec<f64> = rows.iter().map(|row| row.at).collect();
        for at in (1..earliest_from.len()).rev() {
            earliest_from[at - 1] = earliest_from[at - 1].min(earliest_from[at]);
        }
        let mut latest_until: Vec<f64> = rows.iter().map(|row| row.at).collect();
        for at in 1..latest_until.len() {
            latest_until[at] = latest_until[at].max(latest_until[at - 1]);
        }
        Self { sku, on_hand, rows, latest_until, earliest_from }
    }

    /// Units before the first row.
    pub(super) fn before_first(&self) -> Option<i64> {
        self.rows.first().map(|row| row.on_hand_after - row.delta)
    }

    /// The times between settings; the units before a first setting belong to none.
    pub(super) fn epochs(&self) -> Vec<Epoch<'a>> {
        let mut epochs: Vec<Epoch<'a>> = Vec::new();
        for row in &self.rows {
            let before = row.on_hand_after - row.delta;
            if row.kind == Kind::Set {
                if let Some(epoch) = epochs.last_mut() {
                    epoch.end = before;
                }
                epochs.push(Epoch { start: row.on_hand_after, rows: Vec::new(), end: row.on_hand_after });
                continue;
            }
            if epochs.is_empty() {
                epochs.push(Epoch { start: before, rows: Vec::new(), end: before });
            }
            if let Some(epoch) = epochs.last_mut() {
                epoch.end = row.on_hand_after;
                epoch.rows.push(row);
            }
        }
        if let (Some(epoch), Some(on_hand)) = (epochs.last_mut(), self.on_hand) {
            epoch.end = on_hand;
        }
        epochs
    }

    /// The fewest units that may have been in force at some moment between `from` and `to`; none if nothing
    /// is known of that time.
    ///
    /// A row is in force from its commit, which comes after its time. So besides the rows of the interval
    /// the last one before it counts, and what that one replaced, unless it is known to have been committed
    /// by then. Under a lock a row is committed before the next one is written; without one (no token) the
    /// same doubt holds for every row in turn.
    pub(super) fn fewest_between(
        &self,
        from: f64,
        to: f64,
        committed: impl Fn(&LedgerRow) -> bool,
    ) -> Option<i64> {
        let before_first = self.before_first()?;
        let begin = self.latest_until.partition_point(|latest| *latest < from);
        let end = self.earliest_from.partition_point(|earliest| *earliest <= to).max(begin);
        let mut fewest = self.rows[begin..end].iter().map(|row| row.on_hand_after).min();
        let mut consider = |units: i64| fewest = Some(fewest.map_or(units, |fewest: i64| fewest.min(units)));
        let left_by = |rows: &[&LedgerRow]| rows.last().map_or(before_first, |row| row.on_hand_after);
        for at in (0..=begin).rev() {
            consider(left_by(&self.rows[..at]));
            let Some(row) = self.rows[..at].last().filter(|row| !committed(row)) else { break };
            if row.token.is_some() {
                consider(left_by(&self.rows[..at - 1]));
                break;
            }
        }
        fewest
    }
}

/// All SKUs that have stock or a ledger.
#[derive(Debug)]
pub(super) struct Timelines<'a>(pub(super) BTreeMap<&'a str, Timeline<'a>>);

impl<'a> Timelines<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let mut rows: BTreeMap<&str, Vec<&LedgerRow>> = BTreeMap::new();
        for row in &facts.ledger {
            rows.entry(&row.sku).or_default().push(row);
        }
        for stock in &facts.stock {
            rows.entry(&stock.sku).or_default();
        }
        let on_hand: BTreeMap<&str, i64> =
            facts.stock.iter().map(|row| (row.sku.as_str(), row.on_hand)).collect();
        Self(
            rows.into_iter()
                .map(|(sku, mut rows)| {
                    rows.sort_by_key(|row| row.id);
                    (sku, Timeline::new(sku, on_hand.get(sku).copied(), rows))
                })
                .collect(),
        )
    }
}
