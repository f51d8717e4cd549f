//! What each user will ask for: a function of seed, run name and user, nothing else. Pure.
//!
//! Promises: the same seed gives the same quantities, SKUs and actions per user in every run, whatever
//! the service answers; keys also depend on the run's name, so that a second run on the same database
//! asks for new orders instead of replaying the stored replies of the first.

use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::Xoshiro256PlusPlus};
use uuid::{Builder, Uuid};

use crate::history::Line;

/// An order to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedOrder {
    /// Its `Idempotency-Key`.
    pub key: Uuid,
    /// Its lines; SKUs may repeat and are in no particular order.
    pub lines: Vec<Line>,
}

/// How the second copy of a duplicate is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// After the reply to the first, to another replica.
    Later,
    /// At the same moment, to another replica.
    AtOnce,
}

/// One step of a user in the mixed scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Place an order.
    Order(PlannedOrder),
    /// Place an order and send it twice with the same key.
    Duplicate(PlannedOrder, Copy),
    /// Cancel one of the user's own accepted orders: the one with this number, modulo how many there are.
    Cancel {
        /// Which.
        pick: usize,
        /// Send the cancel twice.
        twice: bool,
    },
    /// Read the stock of a SKU.
    ReadStock(String),
    /// Read one of the user's own orders, picked as for a cancel.
    ReadOrder {
        /// Which.
        pick: usize,
    },
    /// Add units.
    Restock(Line),
}

/// The plan of one user.
#[derive(Debug, Clone)]
pub struct UserPlan {
    shape: Xoshiro256PlusPlus,
    keys: Xoshiro256PlusPlus,
    skus: Vec<String>,
    quantity_max: i64,
}

const LINES_MAX: usize = 5;
const RESTOCK_MAX: i64 = 5;

impl UserPlan {
    /// The plan of `user` in the run `run`; quantities go from 1 to `quantity_max`.
    pub fn new(seed: u64, run: &str, user: usize, skus: &[String], quantity_max: i64) -> Self {
        Self {
            shape: generator(seed, user, ""),
            keys: generator(seed, user, &format!("keys/{run}")),
            skus: skus.to_vec(),
            quantity_max,
        }
    }

    /// The next order on one SKU.
    pub fn next_order(&mut self) -> PlannedOrder {
        let line = self.line();
        PlannedOrder { key: self.key(), lines: vec![line] }
    }

    /// The next step of the mixed scenario: orders 55 %, duplicates 15 %, cancels 12 %, reads 13 %,
    /// restocks 5 %.
    pub fn next_action(&mut self) -> Action {
        match self.shape.random_range(0..100) {
            0..55 => Action::Order(self.basket()),
            55..63 => Action::Duplicate(self.basket(), Copy::Later),
            63..70 => Action::Duplicate(self.basket(), Copy::AtOnce),
            70..82 => Action::Cancel { pick: self.pick(), twice: self.shape.random_bool(0.3) },
            82..90 => Action::ReadStock(self.sku()),
            90..95 => Action::ReadOrder { pick: self.pick() },
            _ => Action::Restock(Line::new(self.sku(), self.shape.random_range(1..=RESTOCK_MAX))),
        }
    }

    fn basket(&mut self) -> PlannedOrder {
        let lines = self.shape.random_range(1..=LINES_MAX);
        PlannedOrder { key: self.key(), lines: (0..lines).map(|_| self.line()).collect() }
    }

    fn line(&mut self) -> Line {
        Line::new(self.sku(), self.shape.random_range(1..=self.quantity_max))
    }

    fn sku(&mut self) -> String {
        self.skus[self.shape.random_range(0..self.skus.len())].clone()
    }

    fn pick(&mut self) -> usize {
        self.shape.random_range(0..1 << 16)
    }

    fn key(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        self.keys.fill_bytes(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Seeds by a hash of all three: raw words would leave generators that begin alike.
fn generator(seed: u64, user: usize, stream: &str) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(fnv1a(&format!("{seed}/{user}/{stream}")))
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64, run: &str, user: usize) -> UserPlan {
        UserPlan::new(seed, run, user, &["a".to_owned(), "b".to_owned()], 3)
    }

    fn actions(mut plan: UserPlan) -> Vec<Action> {
        (0..200).map(|_| plan.next_action()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        assert_eq!(actions(plan(7, "run", 3)), actions(plan(7, "run", 3)));
        assert_ne!(actions(plan(7, "run", 3)), actions(plan(8, "run", 3)));
        assert_ne!(actions(plan(7, "run", 3)), actions(plan(7, "run", 4)));
    }

    #[test]
    fn another_run_name_changes_the_keys_alone() {
        let (mut first, mut second) = (plan(7, "first", 0), plan(7, "second", 0));
        for _ in 0..100 {
            let (a, b) = (first.next_order(), second.next_order());
            assert_eq!(a.lines, b.lines);
            assert_ne!(a.key, b.key);
        }
    }

    #[test]
    fn keys_are_distinct() {
        let mut keys = std::collections::HashSet::new();
        for user in 0..100 {
            let mut plan = plan(1, "run", user);
            assert!((0..100).all(|_| keys.insert(plan.next_order().key)));
        }
    }

    #[test]
    fn every_action_occurs() {
        let actions = actions(plan(1, "run", 0));
        let count = |wanted: fn(&Action) -> bool| actions.iter().filter(|action| wanted(action)).count();
        assert!(count(|a| matches!(a, Action::Order(_))) > 80);
        assert!(count(|a| matches!(a, Action::Duplicate(_, Copy::AtOnce))) > 3);
        assert!(count(|a| matches!(a, Action::Duplicate(_, Copy::Later))) > 3);
        assert!(count(|a| matches!(a, Action::Cancel { .. })) > 8);
        assert!(count(|a| matches!(a, Action::Restock(_))) > 2);
    }
}
