//! Verdicts and the exit codes that follow from them.
//!
//! One vocabulary for the audit, for a run and for a whole report. *Unknown* is not a soft *valid*: it says that the
//! load or the fault did not really happen, so nothing was learned.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an audit says about a system, or a report about its claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every invariant held (of a report: every run ended as expected).
    Valid,
    /// An invariant was broken (of a report: a run ended otherwise than expected).
    Invalid,
    /// The load or the fault did not really happen, or the facts could not be read.
    Unknown,
}

impl Verdict {
    /// The word used in reports and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
        }
    }

    /// The exit status that says it.
    pub fn exit(self) -> Exit {
        match self {
            Self::Valid => Exit::Valid,
            Self::Invalid => Exit::Invalid,
            Self::Unknown => Exit::Unknown,
        }
    }

    /// The verdict over several: invalid beats unknown beats valid; nothing at all is unknown.
    pub fn of_all(all: impl IntoIterator<Item = Verdict>) -> Self {
        let mut seen = None;
        for verdict in all {
            seen = Some(match (seen, verdict) {
                (Some(Self::Invalid), _) | (_, Self::Invalid) => Self::Invalid,
                (Some(Self::Unknown), _) | (_, Self::Unknown) => Self::Unknown,
                _ => Self::Valid,
            });
        }
        seen.unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How `lockstock` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: valid, or the command did what it should.
    Valid,
    /// 1: invalid.
    Invalid,
    /// 2: unknown.
    Unknown,
    /// 64: wrong usage.
    Usage,
    /// 70: anything else that went wrong.
    Failure,
    /// 128 + the signal's number: told to stop.
    Signal(u8),
}

impl Exit {
    /// The number given to the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Invalid => 1,
            Self::Unknown => 2,
            Self::Usage => 64,
            Self::Failure => 70,
            Self::Signal(number) => 128 + number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Invalid, Unknown, Valid};
    use super::{Exit, Verdict};

    #[test]
    fn invalid_beats_unknown_beats_valid() {
        assert_eq!(Verdict::of_all([Valid, Valid]), Valid);
        assert_eq!(Verdict::of_all([Valid, Unknown]), Unknown);
        assert_eq!(Verdict::of_all([Unknown, Invalid, Valid]), Invalid);
        assert_eq!(Verdict::of_all([]), Unknown, "nothing was learned from nothing");
    }

    #[test]
    fn exit_codes_are_those_of_the_design() {
        let codes =
            [Valid.exit(), Invalid.exit(), Unknown.exit(), Exit::Usage, Exit::Failure, Exit::Signal(2)];
        assert_eq!(codes.map(Exit::code), [0, 1, 2, 64, 70, 130]);
    }
}
