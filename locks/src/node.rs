//! A contender's node: its name and its data.
//!
//! The name carries a GUID, so that a node whose create got no reply can be found again and is never taken for
//! another's. The data is JSON for people and for waiters: who holds, and which trace to look at.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// Data of a lock node, as JSON:
/// `{"guid":"…","instance":"order-1","label":"…","traceparent":"00-…","since":"2026-01-01T00:00:00Z"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeData {
    /// Identity of the contender: one per call of `acquire`.
    pub guid: Uuid,
    /// Name of the process, as its session was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What the lock is wanted for, in the caller's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// W3C trace context of the request behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// When it joined, by the contender's wall clock.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Set by somebody who asks the holder to let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Revocation>,
}

/// A request to let go of a lock. The holder hears it on its guard; nothing forces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// Who asks.
    pub by: Option<String>,
    /// Why, in the asker's words.
    pub reason: Option<String>,
}

/// What Curator's `Revoker` writes over the whole data of a node.
pub(crate) const CURATOR_REVOKE: &[u8] = b"__REVOKE__";

impl NodeData {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // A struct of strings always serializes.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// `None` for data that another library wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The request to let go that a node's data carries, ours or Curator's.
pub(crate) fn revocation(data: &[u8]) -> Option<Revocation> {
    if data == CURATOR_REVOKE {
        return Some(Revocation { by: None, reason: None });
    }
    NodeData::from_bytes(data)?.revoke
}

/// What a contender wants, as its node's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Shared with other readers.
    Read,
    /// Shared with nobody.
    Write,
}

/// What in a name comes before the sequence number, and what it means.
const MARKS: [(&str, Access); 8] = [
    ("lock-", Access::Write),    // ours and Curator's mutex
    ("__WRIT__", Access::Write), // ours and Curator's read/write lock
    ("__READ__", Access::Read),
    ("-W-", Access::Write), // the broadcast read/write lock
    ("-R-", Access::Read),
    ("lease-", Access::Read),    // a semaphore's permit, ours or Curator's
    ("__lock__", Access::Write), // kazoo's Lock and WriteLock
    ("__rlock__", Access::Read), // kazoo's ReadLock
];

/// Reads a contender's name: what it wants, and the sequence number that the server appended. `None` for what is
/// no contender.
///
/// The counter is a signed 32-bit one: after 2147483647 comes `-2147483648`.
pub(crate) fn parse(name: &str) -> Option<(Access, i32)> {
    MARKS.iter().find_map(|(mark, access)| {
        let digits = &name[name.rfind(mark)? + mark.len()..];
        // `parse` alone would accept a plus sign.
        let sequence = if digits.starts_with('+') { None } else { digits.parse().ok() };
        Some((*access, sequence?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_what_follows_the_mark() {
        let guid = "_c_6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        assert_eq!(parse(&format!("{guid}-lock-0000000007")), Some((Access::Write, 7)));
        assert_eq!(parse(&format!("{guid}-lock--2147483648")), Some((Access::Write, i32::MIN)));
        assert_eq!(parse(&format!("{guid}-__READ__0000000009")), Some((Access::Read, 9)));
        assert_eq!(parse(&format!("{guid}-__WRIT__0000000010")), Some((Access::Write, 10)));
        assert_eq!(parse("block-R-0000000003"), Some((Access::Read, 3)));
        assert_eq!(parse("host-R-W-0000000004"), Some((Access::Write, 4)));
        assert_eq!(parse("f00__lock__0000000005"), Some((Access::Write, 5)));
        assert_eq!(parse("f00__rlock__0000000006"), Some((Access::Read, 6)));
        for foreign in ["", "lock", "lock-", "lock-x", "lock-+1", "config", "lock-99999999999", "0000000001"]
        {
            assert_eq!(parse(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn data_of_other_libraries_is_no_error() {
        assert_eq!(NodeData::from_bytes(b"10.0.0.1"), None);
        assert_eq!(NodeData::from_bytes(b""), None);
        assert_eq!(revocation(b"10.0.0.1"), None);
        assert_eq!(revocation(b"__REVOKE__"), Some(Revocation { by: None, reason: None }));
    }
}
