//! What is counted once however many ways it shows, and what the client was promised beyond the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::AuditReport;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Acknowledged but missing, by subject.
    pub(super) lost: BTreeSet<String>,
    /// There more than once, with how often beyond once.
    pub(super) doubled: BTreeMap<String, u64>,
    /// Parts that contradict each other, by subject.
    pub(super) mismatched: BTreeSet<String>,
    /// Units by SKU that the client rightly believes taken although the ledger has not taken them; negative
    /// where the ledger took what nobody was promised.
    pub(super) promised: BTreeMap<String, i64>,
}

impl Tally {
    /// Notes that a subject exists `times` too often; the most of all ways in which it shows counts.
    pub(super) fn double(&mut self, subject: &str, times: u64) {
        let most = self.doubled.entry(subject.to_owned()).or_default();
        *most = times.max(*most);
    }

    pub(super) fn promise(&mut self, sku: &str, units: i64) {
        *self.promised.entry(sku.to_owned()).or_default() += units;
    }

    pub(super) fn figures(&self, report: &mut AuditReport) {
        report.lost = self.lost.len() as u64;
        report.doubled = self.doubled.values().sum();
        report.mismatched = self.mismatched.len() as u64;
    }
}
