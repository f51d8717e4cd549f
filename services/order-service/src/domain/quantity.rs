//! Counts of units. Promises ranges in which sums of a whole order cannot overflow.

/// How many units one line asks for: 1 to 1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(i64);

/// What a row may hold: 0 to 1,000,000,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnHand(i64);

/// The number is outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from {min} to {max}")]
pub struct BadQuantity {
    /// Smallest allowed.
    pub min: i64,
    /// Largest allowed.
    pub max: i64,
}

impl Quantity {
    /// Smallest quantity of a line.
    pub const MIN: i64 = 1;
    /// Largest quantity of a line.
    pub const MAX: i64 = 1_000_000;

    /// # Errors
    /// [`BadQuantity`] outside 1 to 1,000,000, and for `None` (no whole number at all).
    pub fn new(units: Option<i64>) -> Result<Self, BadQuantity> {
        within(units, Self::MIN, Self::MAX).map(Self)
    }

    /// The number of units.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl OnHand {
    /// Smallest stock.
    pub const MIN: i64 = 0;
    /// Largest stock that can be set or restocked to.
    pub const MAX: i64 = 1_000_000_000_000;

    /// # Errors
    /// [`BadQuantity`] outside 0 to 1,000,000,000,000, and for `None` (no whole number at all).
    pub fn new(units: Option<i64>) -> Result<Self, BadQuantity> {
        within(units, Self::MIN, Self::MAX).map(Self)
    }

    /// The number of units.
    pub fn get(self) -> i64 {
        self.0
    }
}

fn within(units: Option<i64>, min: i64, max: i64) -> Result<i64, BadQuantity> {
    units.filter(|units| (min..=max).contains(units)).ok_or(BadQuantity { min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_both_ranges() {
        for (units, good) in [(0, false), (1, true), (1_000_000, true), (1_000_001, false), (-1, false)] {
            assert_eq!(Quantity::new(Some(units)).is_ok(), good, "{units}");
        }
        for (units, good) in [(-1, false), (0, true), (OnHand::MAX, true), (OnHand::MAX + 1, false)] {
            assert_eq!(OnHand::new(Some(units)).is_ok(), good, "{units}");
        }
        assert!(Quantity::new(None).is_err());
    }
}
