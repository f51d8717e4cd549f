//! What the audit found.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;

/// An invariant of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Invariant {
    /// The stock adds up, and nobody was refused what was there.
    I1,
    /// Acknowledged, placed and entered exactly once.
    I2,
    /// Tokens never go down.
    I3,
    /// No lock and no watch is left.
    I4,
    /// No transaction and no advisory lock is left.
    I5,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which invariant is broken.
    pub invariant: Invariant,
    /// What it is about: a SKU, an order, a key, a path.
    pub subject: String,
    /// What is wrong, with the numbers.
    pub text: String,
}

/// How much there was to judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// SKUs.
    pub skus: u64,
    /// Orders in the database.
    pub orders: u64,
    /// Rows of the ledger.
    pub ledger_rows: u64,
    /// Accepted orders: of the client's history, else of the database.
    pub accepted: u64,
    /// Keys in the client's history.
    pub keys: u64,
    /// Refusals for lack of stock that were compared with the ledger.
    pub refusals: u64,
    /// Whether requests went on while the audit waited for quiet.
    #[serde(default)]
    pub traffic: bool,
    /// Invariants whose source was not given, or that traffic kept from being judged.
    pub not_judged: Vec<Invariant>,
}

/// The figures, the findings behind them and the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Valid, invalid, or unknown: there was no accepted order to judge, or no quiet to judge in.
    pub verdict: Verdict,
    /// Units acknowledged, plus those still offered, beyond what there was.
    pub oversold: i64,
    /// Units that vanished, plus units refused although they were there.
    pub undersold: i64,
    /// Acknowledged orders, cancels, restocks and settings of stock that the database does not hold whole.
    pub lost: u64,
    /// Orders and cancels that the database holds more than once.
    pub doubled: u64,
    /// Ledger rows whose token is not above that of an earlier holder.
    pub token_regressions: u64,
    /// Nodes left under the lock directories.
    pub leftover_nodes: u64,
    /// Sessions left idle in a transaction.
    pub open_transactions: u64,
    /// Changes of stock that did not start from what the change before them left.
    pub lost_updates: u64,
    /// Orders refused although every unit was there all the time.
    pub wrong_refusals: u64,
    /// Orders that stand although the client was told that they do not.
    pub phantom: u64,
    /// Orders whose lines, ledger rows and acknowledgement differ.
    pub mismatched: u64,
    /// Keys that were both acknowledged and refused.
    pub contradicted: u64,
    /// Ledger rows without a token although the mode has one.
    pub untokened: u64,
    /// Watches more than before the run.
    pub leftover_watches: u64,
    /// Advisory locks left.
    pub advisory_locks: u64,
    /// How much there was to judge.
    pub judged: Judged,
    /// The violations, at most [`AuditReport::FINDINGS_MAX`] per invariant.
    pub findings: Vec<Finding>,
    /// Violations beyond that.
    pub findings_omitted: u64,
}

impl AuditReport {
    /// Findings kept per invariant; the figures count all.
    pub const FINDINGS_MAX: usize = 50;

    pub(super) fn new(judged: Judged) -> Self {
        Self {
            verdict: Verdict::Unknown,
            oversold: 0,
            undersold: 0,
            lost: 0,
            doubled: 0,
            token_regressions: 0,
            leftover_nodes: 0,
            open_transactions: 0,
            lost_updates: 0,
            wrong_refusals: 0,
            phantom: 0,
            mismatched: 0,
            contradicted: 0,
            untokened: 0,
            leftover_watches: 0,
            advisory_locks: 0,
            judged,
            findings: Vec::new(),
            findings_omitted: 0,
        }
    }

    /// Adds a violation.
    pub(super) fn find(&mut self, invariant: Invariant, subject: impl Into<String>, text: String) {
        let same = self.findings.iter().filter(|finding| finding.invariant == invariant).count();
        if same < Self::FINDINGS_MAX {
            self.findings.push(Finding { invariant, subject: subject.into(), text });
        } else {
            self.findings_omitted += 1;
        }
    }

    /// The verdict that follows from the findings.
    pub(super) fn conclude(mut self) -> Self {
        self.verdict = if !self.findings.is_empty() {
            Verdict::Invalid
        } else if self.judged.accepted == 0 || self.judged.traffic {
            Verdict::Unknown
        } else {
            Verdict::Valid
        };
        self.findings.sort_by(|a, b| (a.invariant, &a.subject).cmp(&(b.invariant, &b.subject)));
        self
    }
}
