//! Which faults there are, and how often each must be proved to have struck.

use std::fmt;
use std::str::FromStr;

/// A fault that strikes whoever holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The holder's ZooKeeper session is ended for real, at the server, while it holds.
    ExpireHolder,
    /// The holder's process is stopped (SIGSTOP) for longer than its session, then goes on as if nothing had been.
    FreezeHolder,
}

struct Row {
    kind: FaultKind,
    name: &'static str,
    about: &'static str,
    required: usize,
    /// Units that are sold while one strike is made, a missed moment or two included.
    units_each: i64,
}

/// Units that are sold before the first strike and after the last one.
const UNITS_BESIDE: i64 = 100;

/// All faults there are.
const TABLE: [Row; 2] = [
    Row {
        kind: FaultKind::ExpireHolder,
        name: "expire-holder",
        about: "end the ZooKeeper session of whoever holds the lock",
        required: 5,
        units_each: 25,
    },
    Row {
        kind: FaultKind::FreezeHolder,
        name: "freeze-holder",
        about: "SIGSTOP whoever holds the lock for longer than its session",
        required: 1,
        units_each: 60,
    },
];

impl FaultKind {
    fn row(self) -> &'static Row {
        match self {
            Self::ExpireHolder => &TABLE[0],
            Self::FreezeHolder => &TABLE[1],
        }
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// One sentence for help texts.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// How many confirmed strikes a run needs to have learned anything.
    pub fn required(self) -> usize {
        self.row().required
    }

    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.kind)
    }
}

/// The faults of one run, in the order in which they strike; each step a kind and how often.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    steps: Vec<(FaultKind, usize)>,
}

impl Faults {
    /// No fault.
    pub fn none() -> Self {
        Self::default()
    }

    /// The faults of the demo: the freeze strikes in the middle of the expiries.
    pub fn demo() -> Self {
        let before = FaultKind::ExpireHolder.required() / 2;
        let after = FaultKind::ExpireHolder.required() - before;
        Self {
            steps: vec![
                (FaultKind::ExpireHolder, before),
                (FaultKind::FreezeHolder, FaultKind::FreezeHolder.required()),
                (FaultKind::ExpireHolder, after),
            ],
        }
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[(FaultKind, usize)] {
        &self.steps
    }

    /// Whether there is nothing to inject.
    pub fn is_none(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a kind is among them.
    pub fn includes(&self, kind: FaultKind) -> bool {
        self.steps.iter().any(|step| step.0 == kind)
    }

    /// Units that last until all have struck, at the pace of one hot SKU.
    pub fn stock(&self) -> i64 {
        let while_striking = self.steps.iter().map(|(kind, times)| {
            kind.row().units_each.saturating_mul(i64::try_from(*times).unwrap_or(i64::MAX))
        });
        UNITS_BESIDE + while_striking.sum::<i64>()
    }

    /// How many strikes of a kind must be confirmed.
    pub fn required(&self, kind: FaultKind) -> usize {
        self.steps.iter().filter(|step| step.0 == kind).map(|step| step.1).sum()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            FaultKind::all().filter(|kind| self.includes(*kind)).map(FaultKind::name).collect();
        f.pad(&if names.is_empty() { "none".to_owned() } else { names.join("+") })
    }
}

/// A word that names no fault.
#[derive(Debug, thiserror::Error)]
#[error("no fault is called {word:?}; there are none, {known}")]
pub struct ParseFaultError {
    word: String,
    known: String,
}

impl FromStr for Faults {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::none());
        }
        let mut kinds = Vec::new();
        for word in text.split('+') {
            let kind = FaultKind::all().find(|kind| kind.name() == word).ok_or_else(|| ParseFaultError {
                word: word.to_owned(),
                known: FaultKind::all().map(FaultKind::name).collect::<Vec<_>>().join(", "),
            })?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.len() == TABLE.len() {
            return Ok(Self::demo());
        }
        Ok(Self { steps: kinds.into_iter().map(|kind| (kind, kind.required())).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultKind, Faults};

    #[test]
    fn names_read_back() {
        for text in ["none", "expire-holder", "freeze-holder", "expire-holder+freeze-holder"] {
            assert_eq!(text.parse::<Faults>().expect("known").to_string(), text);
        }
        let error = "melt-holder".parse::<Faults>().expect_err("unknown").to_string();
        assert!(error.contains("melt-holder") && error.contains("expire-holder"), "{error}");
    }

    #[test]
    fn the_demo_strikes_as_often_as_required() {
        let faults = Faults::demo();
        assert_eq!(faults.required(FaultKind::ExpireHolder), 5);
        assert_eq!(faults.required(FaultKind::FreezeHolder), 1);
        assert_eq!(Faults::none().required(FaultKind::FreezeHolder), 0);
    }

    #[test]
    fn each_row_is_found_by_its_kind() {
        for kind in FaultKind::all() {
            assert_eq!(kind.row().kind, kind);
        }
    }
}
