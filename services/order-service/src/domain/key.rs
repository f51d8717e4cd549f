//! Idempotency keys and the fingerprint of the request they are bound to.

use sha2::{Digest, Sha256};

use super::{Command, Kind};

/// Longest key, in bytes.
const LENGTH_MAX: usize = 255;

/// The value of an `Idempotency-Key` header: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// The header's value is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 255 visible ASCII characters, sent once")]
pub struct BadKey;

impl IdempotencyKey {
    /// # Errors
    /// [`BadKey`] if it is empty, too long, or has blanks, control or non-ASCII characters.
    pub fn parse(value: &[u8]) -> Result<Self, BadKey> {
        if value.is_empty() || value.len() > LENGTH_MAX || !value.iter().all(u8::is_ascii_graphic) {
            return Err(BadKey);
        }
        String::from_utf8(value.to_vec()).map(Self).map_err(|_| BadKey)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// SHA-256 over what a request asks for: its kind and its added-up lines in SKU order.
///
/// Two bodies that mean the same (other order of lines, other spacing, a SKU given twice) have the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHash([u8; 32]);

impl RequestHash {
    /// The hash of what `command` asks for; identities that the service made up (the order's id) are left out.
    pub fn of(command: &Command) -> Self {
        let mut hash = Sha256::new();
        hash.update(command.kind().as_str());
        hash.update([0]);
        if command.kind() == Kind::Cancel {
            hash.update(command.order_id().unwrap_or_default());
        }
        for (sku, units) in command.units() {
            hash.update(sku.as_str());
            hash.update([0]);
            hash.update(units.to_be_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The digest.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A key together with the hash of the request that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The client's key.
    pub key: IdempotencyKey,
    /// What the request asked for.
    pub hash: RequestHash,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::{Lines, Quantity, Sku};
    use super::*;

    fn order(lines: &[(&str, i64)]) -> Command {
        let lines = lines.iter().map(|(s, q)| (Sku::parse(s).unwrap(), Quantity::new(Some(*q)).unwrap()));
        Command::Order { id: Uuid::now_v7(), lines: Lines::add_up(lines).unwrap() }
    }

    #[test]
    fn the_hash_is_of_the_meaning() {
        let hash = |lines: &[(&str, i64)]| RequestHash::of(&order(lines));
        assert_eq!(hash(&[("a", 1), ("b", 2)]), hash(&[("b", 1), ("a", 1), ("b", 1)]));
        assert_ne!(hash(&[("a", 1)]), hash(&[("a", 2)]));
        assert_ne!(hash(&[("a", 1)]), hash(&[("b", 1)]));
        // No way to shift a character from the SKU into the number.
        assert_ne!(hash(&[("a", 0x31)]), hash(&[("a1", 0x31)]));
    }

    #[test]
    fn another_kind_with_the_same_numbers_is_another_request() {
        let sku = Sku::parse("a").unwrap();
        let restock = Command::Restock { sku, quantity: Quantity::new(Some(1)).unwrap() };
        assert_ne!(RequestHash::of(&restock), RequestHash::of(&order(&[("a", 1)])));
    }

    #[test]
    fn keys() {
        assert!(IdempotencyKey::parse(b"1f2e-33").is_ok());
        for bad in [b"".as_slice(), b"a b", b"\xc3\xa4", b"a\n", &[b'k'; 256]] {
            assert_eq!(IdempotencyKey::parse(bad), Err(BadKey));
        }
    }
}
