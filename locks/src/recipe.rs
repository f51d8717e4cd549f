//! The recipes, as data: which node a contender makes, and what it waits on.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;
use zookeeper_client::CreateMode;

/// A way to take an exclusive lock.
///
/// | recipe | znodes | waits on | cost of a hand-over with n waiters |
/// |---|---|---|---|
/// | `simple` | `<path>/lock`, one ephemeral node | that node | n notifications and n creates, of which one wins |
/// | `fair` | `<path>/_c_<guid>-lock-<seq>`, Curator's layout | the nearest predecessor | one notification |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recipe {
    /// One node, whoever creates it holds; every waiter wakes at each release, and there is no order.
    Simple,
    /// A queue in the order of arrival; each waiter watches the one before it.
    Fair,
}

impl Recipe {
    /// The name used in configuration, labels and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Fair => "fair",
        }
    }

    /// Name of a contender's node; the server appends the sequence number where the mode is sequential.
    pub(crate) fn node_name(self, guid: Uuid) -> String {
        match self {
            Self::Simple => SIMPLE_NODE.to_owned(),
            Self::Fair => format!("_c_{guid}-lock-"),
        }
    }

    pub(crate) const fn create_mode(self) -> CreateMode {
        match self {
            Self::Simple => CreateMode::Ephemeral,
            Self::Fair => CreateMode::EphemeralSequential,
        }
    }
}

/// The one node of [`Recipe::Simple`].
pub(crate) const SIMPLE_NODE: &str = "lock";

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Simple, Self::Fair]
            .into_iter()
            .find(|recipe| recipe.as_str() == name)
            .ok_or_else(|| UnknownRecipe { name: name.to_owned() })
    }
}

/// A name that is no recipe's.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("unknown lock recipe {name:?}; known are simple and fair")]
pub struct UnknownRecipe {
    /// The name as given.
    pub name: String,
}
