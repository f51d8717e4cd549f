//! Which faults there are, and how often each must be proved to have struck.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The holder's ZooKeeper session is ended for real, at the server, while it holds.
    ExpireHolder,
    /// The holder's process is stopped for longer than its session, then goes on as if nothing had been.
    FreezeHolder,
    /// The holder's process is killed, and started again.
    KillHolder,
    /// The holder is cut off its network, from ZooKeeper and all others, for longer than its session.
    CutHolder,
    /// The leader of the ensemble is killed, and started again.
    KillLeader,
    /// A ZooKeeper server is cut off its peers while it still serves clients.
    CutServer,
    /// The database is restarted.
    RestartPostgres,
    /// Each replica is restarted, one after the other.
    RollingRestart,
}

struct Row {
    kind: FaultKind,
    name: &'static str,
    about: &'static str,
    /// Confirmed strikes that a run on a private stack needs; none where it can only strike a compose stack.
    required: Option<usize>,
    /// Units that are sold while one strike is made, a missed moment or two included.
    units_each: i64,
}

/// Units that are sold before the first strike and after the last one.
const UNITS_BESIDE: i64 = 100;

/// Units that last while one fault of a compose stack strikes, if its replicas work without a slow part, as they do
/// unless they are told otherwise: for how long at what pace nobody knows before.
const UNITS_EACH_FAST: i64 = 3000;

/// How long such a fault lasts, from the first moment that is missed until all is well again.
const STRIKE: Duration = Duration::from_secs(15);

const fn compose(kind: FaultKind, name: &'static str, about: &'static str) -> Row {
    Row { kind, name, about, required: None, units_each: UNITS_EACH_FAST }
}

/// All faults there are.
const TABLE: [Row; 8] = [
    Row {
        kind: FaultKind::ExpireHolder,
        name: "expire-holder",
        about: "end the ZooKeeper session of whoever holds the lock",
        required: Some(5),
        units_each: 25,
    },
    Row {
        kind: FaultKind::FreezeHolder,
        name: "freeze-holder",
        about: "stop whoever holds the lock for longer than its session",
        required: Some(1),
        units_each: 60,
    },
    compose(FaultKind::KillHolder, "kill-holder", "kill the replica that holds the lock"),
    compose(FaultKind::CutHolder, "cut-holder", "cut whoever holds the lock off its network"),
    compose(FaultKind::KillLeader, "kill-leader", "kill the leader of the ensemble"),
    compose(
        FaultKind::CutServer,
        "cut-server",
        "cut a ZooKeeper server off its peers; it still serves clients",
    ),
    compose(FaultKind::RestartPostgres, "restart-postgres", "restart the database"),
    compose(FaultKind::RollingRestart, "rolling-restart", "restart each replica, one after the other"),
];

impl FaultKind {
    fn row(self) -> &'static Row {
        let found = TABLE.iter().find(|row| row.kind == self);
        let Some(row) = found else { unreachable!("each kind has its row, as a test says") };
        row
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// One sentence for help texts.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// How many confirmed strikes a run on a private stack needs to have learned anything.
    pub fn required(self) -> usize {
        self.row().required.unwrap_or(1)
    }

    /// Whether only a compose stack can be struck by it.
    pub fn needs_compose(self) -> bool {
        self.row().required.is_none()
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

    /// The same, each once: what one run on a compose stack injects.
    #[must_use]
    pub fn each_once(&self) -> Self {
        let kinds = FaultKind::all().filter(|kind| self.includes(*kind));
        Self { steps: kinds.map(|kind| (kind, 1)).collect() }
    }

    /// Units that last until all have struck on a compose stack, whose critical sections last as long as `work` at least.
    pub fn stock_on_compose(&self, work: Duration) -> i64 {
        let at_most = STRIKE.as_millis().checked_div(work.as_millis());
        let each = at_most.map_or(UNITS_EACH_FAST, |units| i64::try_from(units).unwrap_or(UNITS_EACH_FAST));
        UNITS_BESIDE + each.min(UNITS_EACH_FAST) * i64::try_from(self.steps.len()).unwrap_or(i64::MAX)
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
        if kinds.len() == 2 && kinds.iter().all(|kind| !kind.needs_compose()) {
            return Ok(Self::demo());
        }
        Ok(Self { steps: kinds.into_iter().map(|kind| (kind, kind.required())).collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FaultKind, Faults};

    #[test]
    fn names_read_back() {
        for text in [
            "none",
            "expire-holder",
            "freeze-holder",
            "expire-holder+freeze-holder",
            "kill-holder+cut-server",
        ] {
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
        for kind in [
            FaultKind::ExpireHolder,
            FaultKind::FreezeHolder,
            FaultKind::KillHolder,
            FaultKind::CutHolder,
            FaultKind::KillLeader,
            FaultKind::CutServer,
            FaultKind::RestartPostgres,
            FaultKind::RollingRestart,
        ] {
            assert_eq!(kind.row().kind, kind);
        }
    }

    #[test]
    fn on_a_compose_stack_each_fault_strikes_once() {
        let faults: Faults = "cut-server+expire-holder".parse().expect("known");
        assert_eq!(faults.to_string(), "expire-holder+cut-server");
        let once = faults.each_once();
        assert_eq!(once.steps(), [(FaultKind::ExpireHolder, 1), (FaultKind::CutServer, 1)]);
        assert_eq!(once.stock_on_compose(Duration::from_millis(50)), 700, "20 in a second, for 15 s each");
        assert_eq!(once.stock_on_compose(Duration::ZERO), 6100);
    }
}
