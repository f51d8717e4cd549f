//! What the audit of a run should find, as a table.

use crate::verdict::Verdict;

use super::{FaultKind, Faults, UNLOCKED};

/// What the audit should find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Every invariant holds.
    Valid,
    /// Units were oversold: the danger is real.
    Oversold,
}

/// Nothing is claimed about this combination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoClaim {
    /// There is no holder to strike.
    #[error(
        "mode none takes no lock, so fault {faults} has no holder to strike; use --fault none or another mode"
    )]
    NoHolder {
        /// The fault.
        faults: String,
    },
    /// There is no token to fence with.
    #[error("mode none has no fencing token, so it cannot have the fenced writer; use --writer plain")]
    NoToken,
    /// The outcome is a race.
    #[error(
        "whether the plain writer oversells under {faults} is a race: a holder that notices the loss in time \
         does not write; say what you expect with --expect, or use --fault freeze-holder"
    )]
    Race {
        /// The fault.
        faults: String,
    },
}

impl Expectation {
    /// The claim about a combination.
    pub fn of(mode: &str, writer: &str, faults: &Faults) -> Result<Self, NoClaim> {
        possible(mode, writer, faults)?;
        match (mode, writer) {
            (UNLOCKED, _) => Ok(Self::Oversold),
            (_, "fenced") => Ok(Self::Valid),
            _ if faults.is_none() => Ok(Self::Valid),
            _ if faults.includes(FaultKind::FreezeHolder) => Ok(Self::Oversold),
            _ => Err(NoClaim::Race { faults: faults.to_string() }),
        }
    }

    /// The verdict that the audit gives when it finds this.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Valid => Verdict::Valid,
            Self::Oversold => Verdict::Invalid,
        }
    }

    /// Whether a verdict and the units oversold are what was expected, for the expected reason.
    pub fn is_met(self, verdict: Verdict, oversold: i64) -> bool {
        verdict == self.verdict() && (self == Self::Valid || oversold > 0)
    }
}

/// Whether a combination can be run at all.
pub fn possible(mode: &str, writer: &str, faults: &Faults) -> Result<(), NoClaim> {
    if mode == UNLOCKED && writer == "fenced" {
        return Err(NoClaim::NoToken);
    }
    if mode == UNLOCKED && !faults.is_none() {
        return Err(NoClaim::NoHolder { faults: faults.to_string() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(mode: &str, writer: &str, fault: &str) -> Result<Expectation, NoClaim> {
        Expectation::of(mode, writer, &fault.parse().expect("known"))
    }

    #[test]
    fn the_table() {
        assert_eq!(claim("none", "plain", "none"), Ok(Expectation::Oversold));
        assert_eq!(claim("zk-fair", "plain", "none"), Ok(Expectation::Valid));
        assert_eq!(claim("zk-fair", "plain", "freeze-holder"), Ok(Expectation::Oversold));
        assert_eq!(claim("zk-simple", "fenced", "expire-holder+freeze-holder"), Ok(Expectation::Valid));
        assert!(matches!(claim("zk-fair", "plain", "expire-holder"), Err(NoClaim::Race { .. })));
        assert!(matches!(claim("none", "plain", "expire-holder"), Err(NoClaim::NoHolder { .. })));
        assert!(matches!(claim("none", "fenced", "none"), Err(NoClaim::NoToken)));
    }

    #[test]
    fn danger_is_met_only_by_units_oversold() {
        assert!(Expectation::Oversold.is_met(Verdict::Invalid, 3));
        assert!(
            !Expectation::Oversold.is_met(Verdict::Invalid, 0),
            "invalid for another reason is not the claim"
        );
        assert!(!Expectation::Valid.is_met(Verdict::Unknown, 0));
    }
}
