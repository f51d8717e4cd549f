//! Never miss, for tokens: one that goes down, one with two holders, one that is missing, a fence that fell behind.

use lab::audit::{
    Invariant, Tolerance,
    facts::{Guarded, Kind},
    judge,
};
use proptest::prelude::*;

use super::{
    judge_of_spoilt_worlds::{found, some, world},
    world::World,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_token_went_down((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let later: Vec<_> = (3..facts.ledger.len()).collect();
        let at = *some!(later.get(some!(pick.checked_rem(later.len()))));
        let sku = facts.ledger[at].sku.clone();
        let before = some!(facts.ledger[..at].iter().rev().find(|row| row.sku == sku)).token;
        facts.ledger[at].token = before.map(|token| token - 1);
        let report = found(&facts);
        prop_assert_eq!(report.token_regressions, 1);
        prop_assert!(report.findings.iter().all(|finding| finding.invariant == Invariant::I3));
        facts.ledger[at].token = before;
        prop_assert_eq!(found(&facts).token_regressions, 1, "two holders with one token");
        facts.ledger[at].token = None;
        prop_assert_eq!(found(&facts).untokened, 1);
        facts.ledger[at].kind = Kind::FenceReset;
        prop_assert_eq!(judge(&facts, Tolerance::default()).untokened, 0, "a reset has no token");
    }

    #[test]
    fn a_fence_fell_behind((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let at = some!(pick.checked_rem(facts.stock.len()));
        facts.stock[at].fence -= 1;
        let report = found(&facts);
        prop_assert_eq!(report.token_regressions, 1);
        prop_assert!(report.findings.iter().all(|finding| finding.invariant == Invariant::I3));
        facts.guarded = Guarded::ByLock;
        prop_assert_eq!(judge(&facts, Tolerance::default()).token_regressions, 0, "the plain writer has no fence");
    }
}
