//! Never cry wolf: whatever a sound service does, and whatever the client saw of it, nothing is found.

use lab::{
    audit::{Invariant, Tolerance, facts::Facts, judge},
    verdict::Verdict,
};
use proptest::prelude::*;

use super::world::{Reply, Step, Weather, World, steps};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_found(steps in steps()) {
        let facts = World::after(&steps);
        let report = judge(&facts, Tolerance::default());
        prop_assert_eq!(&report.findings, &[]);
        let figures = [report.lost, report.doubled, report.token_regressions, report.leftover_nodes, report.open_transactions];
        prop_assert_eq!(figures, [0; 5]);
        prop_assert_eq!((report.oversold, report.undersold), (0, 0));
        let wanted = if report.judged.accepted > 0 { Verdict::Valid } else { Verdict::Unknown };
        prop_assert_eq!(report.verdict, wanted);
    }

    #[test]
    fn nothing_is_found_without_a_history(steps in steps()) {
        let facts = Facts { history: None, ..World::after(&steps) };
        let report = judge(&facts, Tolerance::default());
        prop_assert_eq!(&report.findings, &[]);
        prop_assert_eq!(report.judged.accepted, facts.orders.len() as u64);
    }
}

#[test]
fn no_accepted_order_is_unknown() {
    let report = judge(&World::after(&[]), Tolerance::default());
    assert_eq!((report.verdict, report.judged.accepted), (Verdict::Unknown, 0));
    let weather = Weather { kind: Reply::Foreign, before_ms: 1.0, after_ms: 1.0 };
    let foreign = World::after(&[Step::Order(vec![(0, 1)], weather)]);
    let report = judge(&foreign, Tolerance::default());
    assert_eq!(report.verdict, Verdict::Unknown, "orders of others say nothing about this client's");
}

#[test]
fn a_source_that_was_not_given_is_named() {
    let facts = Facts { locks: None, sessions: None, ..World::after(&[]) };
    let report = judge(&facts, Tolerance::default());
    assert_eq!(report.judged.not_judged, [Invariant::I4, Invariant::I5]);
}
