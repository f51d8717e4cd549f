//! The name of a thing in stock. Promises the shape of the name, not that the thing exists.

use std::fmt;

/// Longest SKU, in bytes.
const LENGTH_MAX: usize = 64;

/// A stock keeping unit: `[A-Za-z0-9._-]{1,64}`.
///
/// `.` and `..` are legal, so a SKU is never used as a path segment of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sku(String);

/// The text is no SKU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must match [A-Za-z0-9._-]{{1,64}}")]
pub struct BadSku;

impl Sku {
    /// Parses a SKU.
    ///
    /// # Errors
    /// [`BadSku`] if the text is empty, longer than 64 bytes or has another character.
    pub fn parse(text: &str) -> Result<Self, BadSku> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > LENGTH_MAX || !text.bytes().all(legal) {
            return Err(BadSku);
        }
        Ok(Self(text.to_owned()))
    }

    /// The SKU as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_documented_shape_is_accepted_and_kept(text in "[A-Za-z0-9._-]{1,64}") {
            let sku = Sku::parse(&text).unwrap();
            prop_assert_eq!(sku.as_str(), text.as_str());
        }

        #[test]
        fn anything_else_is_refused(text in ".*") {
            let legal = !text.is_empty()
                && text.len() <= 64
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            prop_assert_eq!(Sku::parse(&text).is_ok(), legal);
        }
    }

    #[test]
    fn dots_are_skus_and_65_bytes_are_not() {
        assert!(Sku::parse(".").is_ok());
        assert!(Sku::parse("..").is_ok());
        assert!(Sku::parse(&"a".repeat(65)).is_err());
    }
}
