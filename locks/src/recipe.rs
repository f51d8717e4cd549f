//! The recipes, as data: which node a contender makes, and what it waits on.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;
use zookeeper_client::CreateMode;

use crate::node::Access;

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

/// A way to take a read/write lock: readers share it, a writer has it alone, and both wait in one queue in the
/// order of arrival, so that neither starves the other.
///
/// | recipe | znodes | waits on | cost of a hand-over with n waiters |
/// |---|---|---|---|
/// | `broadcast` | `<path>/<host>.<guid>-R-<seq>`, `…-W-<seq>` | the children of `<path>` | n notifications and n listings |
/// | `fair` | `<path>/_c_<guid>-__READ__<seq>`, `…-__WRIT__<seq>`, Curator's layout | a reader the nearest earlier writer, a writer its predecessor | one notification, or one for each reader that enters |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RwRecipe {
    /// Every waiter watches the directory and wakes at every change.
    Broadcast,
    /// Each waiter watches the one contender that is in its way.
    Fair,
}

impl Recipe {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Simple, Self::Fair];

    /// The name used in configuration.
    pub const fn as_str(self) -> &'static str {
        Role::Mutex(self).as_str()
    }
}

impl RwRecipe {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Broadcast, Self::Fair];

    /// The name used in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Fair => "fair",
        }
    }
}

/// What a contender is. Labels of statistics and spans are made of it; they never grow with the number of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Wants an exclusive lock.
    Mutex(Recipe),
    /// Wants to share a read/write lock with other readers.
    Read(RwRecipe),
    /// Wants a read/write lock alone.
    Write(RwRecipe),
    /// Wants one of a semaphore's permits.
    Permit,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mutex(Recipe::Simple),
        Self::Mutex(Recipe::Fair),
        Self::Read(RwRecipe::Broadcast),
        Self::Read(RwRecipe::Fair),
        Self::Write(RwRecipe::Broadcast),
        Self::Write(RwRecipe::Fair),
        Self::Permit,
    ];

    /// A stable name for labels and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mutex(Recipe::Simple) => "simple",
            Self::Mutex(Recipe::Fair) => "fair",
            Self::Read(RwRecipe::Broadcast) => "broadcast-read",
            Self::Read(RwRecipe::Fair) => "fair-read",
            Self::Write(RwRecipe::Broadcast) => "broadcast-write",
            Self::Write(RwRecipe::Fair) => "fair-write",
            Self::Permit => "permit",
        }
    }

    /// Name of a contender's node; the server appends the sequence number where the mode is sequential.
    pub(crate) fn node_name(self, guid: Uuid, instance: Option<&str>) -> String {
        let host = instance.unwrap_or("unknown").replace('/', "_");
        match self {
            Self::Mutex(Recipe::Simple) => SIMPLE_NODE.to_owned(),
            Self::Mutex(Recipe::Fair) => format!("_c_{guid}-lock-"),
            Self::Read(RwRecipe::Fair) => format!("_c_{guid}-__READ__"),
            Self::Write(RwRecipe::Fair) => format!("_c_{guid}-__WRIT__"),
            Self::Read(RwRecipe::Broadcast) => format!("{host}.{guid}-R-"),
            Self::Write(RwRecipe::Broadcast) => format!("{host}.{guid}-W-"),
            Self::Permit => format!("_c_{guid}-lease-"),
        }
    }

    /// Whether all contenders share one name, which only one of them can have.
    pub(crate) const fn is_single_node(self) -> bool {
        matches!(self, Self::Mutex(Recipe::Simple))
    }

    pub(crate) const fn create_mode(self) -> CreateMode {
        if self.is_single_node() { CreateMode::Ephemeral } else { CreateMode::EphemeralSequential }
    }

    /// Whether a waiter watches the whole directory.
    pub(crate) const fn watches_directory(self) -> bool {
        matches!(self, Self::Read(RwRecipe::Broadcast) | Self::Write(RwRecipe::Broadcast))
    }

    /// Whether whoever was second is first once the first is gone. Not so where a writer can turn into a reader
    /// in its place.
    pub(crate) const fn second_is_next(self) -> bool {
        matches!(self, Self::Mutex(Recipe::Fair))
    }

    /// What the contender wants.
    pub const fn access(self) -> Access {
        match self {
            Self::Read(_) | Self::Permit => Access::Read,
            Self::Mutex(_) | Self::Write(_) => Access::Write,
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

impl fmt::Display for RwRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|recipe| recipe.as_str() == name).ok_or_else(|| UnknownRecipe::new(name))
    }
}

impl FromStr for RwRecipe {
    type Err = UnknownRecipe;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|recipe| recipe.as_str() == name).ok_or_else(|| UnknownRecipe::new(name))
    }
}

/// A name that is no recipe's.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error(
    "unknown lock recipe {name:?}; exclusive locks have simple and fair, read/write locks broadcast and fair"
)]
pub struct UnknownRecipe {
    /// The name as given.
    pub name: String,
}

impl UnknownRecipe {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}
