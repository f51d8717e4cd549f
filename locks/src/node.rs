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
}

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

/// The sequence number that the server appended, of names in Curator's layout (`…lock-0000000007`).
///
/// The counter is a signed 32-bit one: after 2147483647 comes `-2147483648`.
pub(crate) fn sequence(name: &str) -> Option<i32> {
    const MARK: &str = "lock-";
    let digits = &name[name.rfind(MARK)? + MARK.len()..];
    // `parse` alone would accept a plus sign.
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_what_follows_the_mark() {
        assert_eq!(sequence("_c_6ba7b810-9dad-11d1-80b4-00c04fd430c8-lock-0000000007"), Some(7));
        assert_eq!(sequence("_c_6ba7b810-9dad-11d1-80b4-00c04fd430c8-lock--2147483648"), Some(i32::MIN));
        assert_eq!(sequence("lock-2147483647"), Some(i32::MAX));
        for foreign in ["", "lock", "lock-", "lock-x", "lock-+1", "config", "lock-99999999999", "0000000001"]
        {
            assert_eq!(sequence(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn data_of_other_libraries_is_no_error() {
        assert_eq!(NodeData::from_bytes(b"10.0.0.1"), None);
        assert_eq!(NodeData::from_bytes(b""), None);
    }
}
