//! What the sources say, as plain data. No judgement.

use loadtest::history::{Line, Record};

use crate::experiments::UNLOCKED;

/// A SKU's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockRow {
    /// Which SKU.
    pub sku: String,
    /// Units left.
    pub on_hand: i64,
    /// Highest token that ever claimed the row.
    pub fence: i64,
}

/// What every change was guarded by, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarded {
    /// Nothing is known: no token is missed.
    #[default]
    Unknown,
    /// A lock: every change has its token.
    ByLock,
    /// A lock and the fence: no row has seen less than the tokens that changed it.
    ByFence,
}

impl Guarded {
    /// Of a lock mode and a writer.
    pub fn of(mode: &str, writer: &str) -> Self {
        match (mode, writer) {
            (UNLOCKED, _) => Self::Unknown,
            (_, "fenced") => Self::ByFence,
            _ => Self::ByLock,
        }
    }
}

/// Why a ledger row was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Units were taken by an order.
    Order,
    /// Units came back.
    Cancel,
    /// Units were added.
    Restock,
    /// The stock was set.
    Set,
    /// The fence was reset by an operator; the stock stayed as it was.
    FenceReset,
}

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerRow {
    /// Its number: rows of one SKU that are written one after the other have rising numbers.
    pub id: i64,
    /// Which SKU.
    pub sku: String,
    /// Why.
    pub kind: Kind,
    /// Of an order or a cancel, the order.
    pub order_id: Option<String>,
    /// Units added, negative when taken.
    pub delta: i64,
    /// Units left, as the writer computed them.
    pub on_hand_after: i64,
    /// Fencing token; none without a lock.
    pub token: Option<i64>,
    /// Node of the holder; none without a lock.
    pub lock_node: Option<String>,
    /// When it was written by the database's clock, a little before its commit; milliseconds since the
    /// Unix epoch.
    pub at: f64,
}

/// An order with its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow {
    /// Its id.
    pub id: String,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Trace of the request that placed it.
    pub trace_id: String,
    /// Its lines, sorted by SKU.
    pub lines: Vec<Line>,
}

/// A reply that was kept under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The key.
    pub key: String,
    /// The order it was answered with.
    pub order_id: Option<String>,
}

/// What was left once quiet, or at the end of the wait for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftLocks {
    /// Full paths of nodes under the lock directories that were there all the time.
    pub nodes: Vec<String>,
    /// Whether there were others, which came while the audit waited: traffic.
    pub passing: bool,
    /// Watches on the servers before the run, and the fewest there were since.
    pub watches: Option<(u64, u64)>,
}

/// What was left open in the database once quiet, or at the end of the wait for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftSessions {
    /// Sessions that were idle in the same transaction all the time, one description each.
    pub transactions: Vec<String>,
    /// Whether there were others, which came while the audit waited: traffic.
    pub passing: bool,
    /// Granted advisory locks, one description each.
    pub advisory_locks: Vec<String>,
}

/// Everything the judge knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// All SKUs.
    pub stock: Vec<StockRow>,
    /// The ledger in order of its numbers.
    pub ledger: Vec<LedgerRow>,
    /// All orders.
    pub orders: Vec<OrderRow>,
    /// All kept replies.
    pub keys: Vec<KeyRow>,
    /// What the client saw; none if there is no history.
    pub history: Option<Vec<Record>>,
    /// What every change was guarded by.
    pub guarded: Guarded,
    /// Locks; none if they were not looked at.
    pub locks: Option<LeftLocks>,
    /// Database sessions; none if they were not looked at.
    pub sessions: Option<LeftSessions>,
}
