//! How a command ends, and how that is said.

use lab::guard::Signal;
use lab::verdict::Exit;
use stack::Death;

/// A command that did not come to its own end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It was asked for something that makes no sense.
    Usage(String),
    /// A signal came; what was done about it.
    Signal(Signal, String),
    /// A child died unasked; what was done about it.
    Death(Box<Death>, String),
    /// Anything else.
    Failure(anyhow::Error),
}

pub(crate) type Outcome = Result<Exit, Stop>;

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

impl Stop {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Signal(signal, _) => Exit::Signal(signal.number),
            Self::Death(..) | Self::Failure(_) => Exit::Failure,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Usage(what) => what.clone(),
            Self::Signal(signal, then) => format!("stopped by {}; {then}", signal.name),
            Self::Death(death, then) => format!("{death}\n{then}"),
            Self::Failure(error) => format!("{error:#}"),
        }
    }
}
