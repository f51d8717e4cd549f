//! What the client saw: one [`Record`] per request that was sent, as JSON lines.
//!
//! Promises: a record is one attempt, never a summary of several; a reply that did not arrive whole is
//! a record with status 0. Does not promise that a request was applied: only [`Outcome`] says what a
//! client may conclude, and *unknown* is one of its values.

mod keys;
mod outcome;
mod reader;
mod writer;

pub use keys::{Claim, KeyHistory, by_key};
pub use outcome::Outcome;
pub use reader::{ReadError, read};
pub use writer::{Closed, Recorder, WriteError, Writer};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// What a request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// `POST /orders`.
    Order,
    /// `POST /orders/{id}/cancel`; `key` is the key of the order and `order_id` its id.
    Cancel,
    /// Any `GET`.
    Read,
    /// `POST /stock/{sku}/restock`; sent once, because it has no key that would make a retry safe.
    Restock,
    /// `PUT /stock/{sku}`.
    Set,
}

impl Op {
    /// The name in the history and in summaries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Cancel => "cancel",
            Self::Read => "read",
            Self::Restock => "restock",
            Self::Set => "set",
        }
    }
}

/// What the service said about the order, in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placed {
    /// The order stands.
    Placed,
    /// The order does not stand and this request will not place it.
    NotPlaced,
    /// The service does not know; the same key sent again settles it.
    Unknown,
}

/// Some units of one SKU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The stock keeping unit.
    pub sku: String,
    /// Units: of an order at least 1, of a `set` at least 0.
    pub quantity: i64,
}

impl Line {
    /// A line.
    pub fn new(sku: impl Into<String>, quantity: i64) -> Self {
        Self { sku: sku.into(), quantity }
    }
}

/// One attempt: a request and what came back. Fields that the reply did not carry are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the run.
    pub run: String,
    /// Which user sent it, from 0; the set-up and the final pass use the user of the order.
    pub user: usize,
    /// Scheme, host and port it was sent to.
    pub host: String,
    /// What it asked for.
    pub op: Op,
    /// The `Idempotency-Key`; for requests without one, an id of the request.
    pub key: String,
    /// Number of the attempt with this key and operation, from 1.
    pub attempt: u32,
    /// When sending began, milliseconds since the Unix epoch by the client's clock.
    pub sent_at: f64,
    /// When the reply was complete or given up.
    pub received_at: f64,
    /// What was ordered, set or added; empty for reads.
    #[serde(default)]
    pub lines: Vec<Line>,
    /// HTTP status; 0 when no complete reply came.
    pub status: u16,
    /// `code` of a problem document.
    #[serde(default)]
    pub code: Option<String>,
    /// What the reply said about the order.
    #[serde(default)]
    pub placed: Option<Placed>,
    /// Id of the order.
    #[serde(default)]
    pub order_id: Option<String>,
    /// Which replica decided.
    #[serde(default)]
    pub instance: Option<String>,
    /// Fencing token under which it was decided.
    #[serde(default)]
    pub token: Option<i64>,
    /// Place in the lock's queue at entry.
    #[serde(default)]
    pub position: Option<u64>,
    /// How long the order waited for the lock.
    #[serde(default)]
    pub wait_ms: Option<f64>,
    /// How long the lock was held.
    #[serde(default)]
    pub hold_ms: Option<f64>,
    /// Units on hand according to a refusal.
    #[serde(default)]
    pub available: Option<i64>,
    /// Which SKU was short according to a refusal.
    #[serde(default)]
    pub short_sku: Option<String>,
    /// Trace id sent with the request, 32 hexadecimal digits; one per attempt.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// Why there was no complete reply.
    #[serde(default)]
    pub error: Option<String>,
}

/// Now, in the unit of the history: milliseconds since the Unix epoch.
pub fn now_ms() -> f64 {
    OffsetDateTime::now_utc().unix_timestamp_nanos() as f64 / 1e6
}

#[cfg(test)]
pub(crate) fn test_record() -> Record {
    Record {
        run: "r".to_owned(),
        user: 0,
        host: "http://127.0.0.1:1".to_owned(),
        op: Op::Order,
        key: "k".to_owned(),
        attempt: 1,
        sent_at: 0.0,
        received_at: 1.0,
        lines: vec![Line::new("sku-1", 1)],
        status: 0,
        code: None,
        placed: None,
        order_id: None,
        instance: None,
        token: None,
        position: None,
        wait_ms: None,
        hold_ms: None,
        available: None,
        short_sku: None,
        trace_id: None,
        error: None,
    }
}
