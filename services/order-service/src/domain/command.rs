//! The four ways to change stock, and the decision each of them takes on the stock it sees.
//!
//! `decide` is a pure function: the writers differ only in how they come by `Before` and how they write `Change`.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{OnHand, Quantity, Sku};

/// The lines of an order: at least one, equal SKUs added up, in SKU order (the order in which locks are taken).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines(BTreeMap<Sku, i64>);

/// An order needs at least one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must hold at least one line")]
pub struct NoLines;

impl Lines {
    /// Adds equal SKUs up.
    ///
    /// # Errors
    /// [`NoLines`] without a line.
    pub fn add_up(lines: impl IntoIterator<Item = (Sku, Quantity)>) -> Result<Self, NoLines> {
        let mut sums = BTreeMap::new();
        for (sku, quantity) in lines {
            *sums.entry(sku).or_insert(0) += quantity.get();
        }
        if sums.is_empty() { Err(NoLines) } else { Ok(Self(sums)) }
    }

    /// The lines of an order that was accepted before.
    pub(crate) fn stored(lines: impl IntoIterator<Item = (Sku, i64)>) -> Self {
        Self(lines.into_iter().collect())
    }
}

/// A change of stock that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Takes all lines or none.
    Order {
        /// The id the order will have.
        id: Uuid,
        /// What to take.
        lines: Lines,
    },
    /// Gives the lines of an accepted order back.
    Cancel {
        /// The accepted order.
        id: Uuid,
        /// What it took.
        lines: Lines,
    },
    /// Adds units to a SKU that exists.
    Restock {
        /// Where to add.
        sku: Sku,
        /// How many.
        quantity: Quantity,
    },
    /// Sets the stock, and creates the SKU.
    Set {
        /// Which SKU.
        sku: Sku,
        /// What it holds from now on.
        on_hand: OnHand,
    },
}

/// The ledger's word for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Units were taken by an order.
    Order,
    /// Units came back from a cancelled order.
    Cancel,
    /// Units were added.
    Restock,
    /// The stock was set.
    Set,
}

impl Kind {
    /// As the ledger, spans and metrics spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Cancel => "cancel",
            Self::Restock => "restock",
            Self::Set => "set",
        }
    }
}

/// A SKU as the writer found it; `None`: there is no such row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Which SKU.
    pub sku: Sku,
    /// Its stock.
    pub on_hand: Option<i64>,
}

/// One SKU's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which SKU.
    pub sku: Sku,
    /// Stock before.
    pub before: i64,
    /// What is added; negative for an order.
    pub delta: i64,
    /// Stock after.
    pub after: i64,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such SKU.
    UnknownSku {
        /// The first one, in SKU order.
        sku: Sku,
    },
    /// Less is left than asked for.
    OutOfStock {
        /// The first one, in SKU order.
        sku: Sku,
        /// What all lines of this SKU ask for.
        requested: i64,
        /// What is left.
        available: i64,
    },
    /// The row would hold more than [`OnHand::MAX`].
    StockLimit {
        /// Which SKU.
        sku: Sku,
    },
}

/// All changes of a command, or the reason for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write these, in SKU order.
    Apply(Vec<Change>),
    /// Write nothing.
    Refuse(Refusal),
}

impl Command {
    /// What kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Order { .. } => Kind::Order,
            Self::Cancel { .. } => Kind::Cancel,
            Self::Restock { .. } => Kind::Restock,
            Self::Set { .. } => Kind::Set,
        }
    }

    /// The order it makes or cancels.
    pub fn order_id(&self) -> Option<Uuid> {
        match self {
            Self::Order { id, .. } | Self::Cancel { id, .. } => Some(*id),
            Self::Restock { .. } | Self::Set { .. } => None,
        }
    }

    /// Units per SKU, in SKU order; for `Set` the stock asked for.
    pub fn units(&self) -> Vec<(&Sku, i64)> {
        match self {
            Self::Order { lines, .. } | Self::Cancel { lines, .. } => {
                lines.0.iter().map(|(sku, units)| (sku, *units)).collect()
            }
            Self::Restock { sku, quantity } => vec![(sku, quantity.get())],
            Self::Set { sku, on_hand } => vec![(sku, on_hand.get())],
        }
    }

    /// The SKUs to lock, in the order in which to lock them.
    pub fn skus(&self) -> Vec<Sku> {
        self.units().into_iter().map(|(sku, _)| sku.clone()).collect()
    }

    /// Whether a SKU without a row is created.
    pub fn creates(&self) -> bool {
        matches!(self, Self::Set { .. })
    }

    /// Decides on the stock that was found; `before` is in the order of [`Command::units`].
    pub fn decide(&self, before: &[Before]) -> Decision {
        let mut changes = Vec::with_capacity(before.len());
        let mut refusal = None;
        for ((sku, units), found) in self.units().into_iter().zip(before) {
            debug_assert_eq!(*sku, found.sku);
            let on_hand = match found.on_hand {
                Some(on_hand) => on_hand,
                None if self.creates() => 0,
                None => return Decision::Refuse(Refusal::UnknownSku { sku: sku.clone() }),
            };
            let delta = match self.kind() {
                Kind::Order => -units,
                Kind::Cancel | Kind::Restock => units,
                Kind::Set => units - on_hand,
            };
            let after = on_hand + delta;
            if after < 0 {
                let (sku, available) = (sku.clone(), on_hand);
                refusal = refusal.or(Some(Refusal::OutOfStock { sku, requested: units, available }));
            } else if after > OnHand::MAX && self.kind() == Kind::Restock {
                refusal = refusal.or(Some(Refusal::StockLimit { sku: sku.clone() }));
            } else {
                changes.push(Change { sku: sku.clone(), before: on_hand, delta, after });
            }
        }
        refusal.map_or(Decision::Apply(changes), Decision::Refuse)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sku(text: &str) -> Sku {
        Sku::parse(text).unwrap()
    }

    fn order(lines: &[(String, i64)]) -> Command {
        let lines = lines.iter().map(|(s, q)| (sku(s), Quantity::new(Some(*q)).unwrap()));
        Command::Order { id: Uuid::now_v7(), lines: Lines::add_up(lines).unwrap() }
    }

    fn found(command: &Command, stock: &BTreeMap<String, i64>) -> Vec<Before> {
        let before = |sku: Sku| Before { on_hand: stock.get(sku.as_str()).copied(), sku };
        command.skus().into_iter().map(before).collect()
    }

    proptest! {
        #[test]
        fn an_order_is_all_or_nothing_and_never_below_zero(
            stock in proptest::collection::btree_map("[a-e]", 0..50i64, 0..5),
            lines in proptest::collection::vec(("[a-e]", 1..30i64), 1..8),
        ) {
            let command = order(&lines);
            let mut asked: BTreeMap<String, i64> = BTreeMap::new();
            for (sku, quantity) in &lines {
                *asked.entry(sku.clone()).or_default() += quantity;
            }
            let unknown = asked.keys().any(|sku| !stock.contains_key(sku));
            let short = asked.iter().any(|(sku, q)| stock.get(sku).is_some_and(|on_hand| on_hand < q));
            match command.decide(&found(&command, &stock)) {
                Decision::Apply(changes) => {
                    prop_assert!(!unknown && !short);
                    prop_assert_eq!(changes.len(), asked.len());
                    prop_assert!(changes.is_sorted_by(|a, b| a.sku < b.sku));
                    for change in changes {
                        prop_assert_eq!(change.delta, -asked[change.sku.as_str()]);
                        prop_assert_eq!(change.before + change.delta, change.after);
                        prop_assert!(change.after >= 0);
                    }
                }
                Decision::Refuse(Refusal::UnknownSku { .. }) => prop_assert!(unknown),
                Decision::Refuse(Refusal::OutOfStock { sku, requested, available }) => {
                    prop_assert!(!unknown && short);
                    prop_assert_eq!(requested, asked[sku.as_str()]);
                    prop_assert_eq!(available, stock[sku.as_str()]);
                }
                Decision::Refuse(other) => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn set_creates_and_the_delta_explains_it() {
        let set = Command::Set { sku: sku("a"), on_hand: OnHand::new(Some(7)).unwrap() };
        let change = |before, delta| Change { sku: sku("a"), before, delta, after: 7 };
        let created = set.decide(&[Before { sku: sku("a"), on_hand: None }]);
        assert_eq!(created, Decision::Apply(vec![change(0, 7)]));
        let lowered = set.decide(&[Before { sku: sku("a"), on_hand: Some(10) }]);
        assert_eq!(lowered, Decision::Apply(vec![change(10, -3)]));
    }

    #[test]
    fn restock_stops_at_the_limit_and_cancel_does_not() {
        let before = [Before { sku: sku("a"), on_hand: Some(OnHand::MAX) }];
        let restock = Command::Restock { sku: sku("a"), quantity: Quantity::new(Some(1)).unwrap() };
        assert_eq!(restock.decide(&before), Decision::Refuse(Refusal::StockLimit { sku: sku("a") }));
        let cancel = Command::Cancel { id: Uuid::now_v7(), lines: Lines::stored([(sku("a"), 1)]) };
        assert!(matches!(cancel.decide(&before), Decision::Apply(_)));
    }
}
