//! Never miss: each way to spoil a sound world is found, with its number.

use std::collections::HashSet;

use lab::{
    audit::{AuditReport, Invariant, Tolerance, facts::Facts, facts::KeyRow, facts::Kind, judge},
    verdict::Verdict,
};
use loadtest::history::{Claim, Line, Op, Outcome, Placed, Record, by_key};
use proptest::prelude::*;

use super::world::{Answer, Reply, Step, Weather, World, steps};

/// Some traffic and a random number to pick something in its books by.
pub(super) fn world() -> impl Strategy<Value = (Vec<Step>, usize)> {
    (steps(), any::<prop::sample::Index>()).prop_map(|(steps, pick)| (steps, pick.index(1 << 20)))
}

pub(super) fn found(facts: &Facts) -> AuditReport {
    let report = judge(facts, Tolerance::default());
    assert_eq!(report.verdict, Verdict::Invalid, "{report:?}");
    report
}

fn has(report: &AuditReport, invariant: Invariant) -> bool {
    report.findings.iter().any(|finding| finding.invariant == invariant)
}

/// Number of an order that the client knows accepted, and its key.
fn acknowledged(facts: &Facts, pick: usize) -> Option<(usize, String)> {
    let keys = by_key(facts.history.as_ref()?);
    let accepted: Vec<_> = keys.iter().filter(|(_, key)| key.claim() == Claim::Accepted).collect();
    let (key, history) = accepted.get(pick.checked_rem(accepted.len())?)?;
    let id = history.order_ids.first()?;
    Some((facts.orders.iter().position(|order| order.id == *id)?, (**key).to_owned()))
}

fn history(facts: &mut Facts) -> &mut Vec<Record> {
    facts.history.as_mut().expect("a history")
}

/// A reply long after everything else, made from some earlier order.
fn late(facts: &Facts, key: &str, lines: Vec<Line>) -> Option<Record> {
    let template = facts.history.as_ref()?.first()?;
    let last = facts.history.as_ref()?.iter().map(|record| record.received_at).fold(0.0, f64::max);
    Some(Record {
        op: Op::Order,
        key: key.to_owned(),
        lines,
        order_id: None,
        sent_at: last + 10.0,
        received_at: last + 20.0,
        trace_id: Some(format!("trace of {key}")),
        ..template.clone()
    })
}

macro_rules! some {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Err(TestCaseError::reject("nothing to spoil")),
        }
    };
}
pub(super) use some;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_order_row_is_gone((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, _) = some!(acknowledged(&facts, pick));
        facts.orders.remove(number);
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.doubled, report.oversold, report.undersold), (1, 0, 0, 0));
        prop_assert!(!has(&report, Invariant::I1));
    }

    #[test]
    fn an_order_row_is_gone_and_there_is_no_history((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, _) = some!(acknowledged(&facts, pick));
        facts.orders.remove(number);
        facts.history = None;
        prop_assert_eq!(found(&facts).lost, 1);
    }

    #[test]
    fn an_acknowledged_order_was_never_committed((mut steps, _) in world(), units in 1..9_i64) {
        // As if the last commit had not happened: everything agrees but the client's history.
        let calm = Weather { kind: Reply::Arrives, before_ms: 1.0, after_ms: 1.0 };
        steps.extend([Step::Set(0, 20, calm), Step::Order(vec![(0, units), (0, 1)], calm)]);
        let mut facts = World::after(&steps);
        let last = some!(facts.orders.last().cloned());
        let touched = some!(facts.ledger.pop());
        facts.orders.pop();
        facts.keys.retain(|key| key.order_id.as_ref() != Some(&last.id));
        facts.stock[0].on_hand -= touched.delta;
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.oversold, report.undersold), (1, units + 1, 0));
        prop_assert_eq!(report.lost_updates, 0);
    }

    #[test]
    fn an_acknowledgement_was_made_up((steps, _) in world(), units in 1..9_i64) {
        let mut facts = World::after(&steps);
        let record = some!(late(&facts, "made up", vec![Line::new("sku-0", units)]));
        history(&mut facts).push(Record { status: 201, order_id: Some("no-such-order".to_owned()), ..record });
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.oversold, report.doubled), (1, units, 0));
    }

    #[test]
    fn a_ledger_row_is_doubled((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let rows: Vec<_> = facts.ledger.iter().filter(|row| row.order_id.is_some()).cloned().collect();
        let row = some!(rows.get(some!(pick.checked_rem(rows.len()))));
        let at = some!(facts.ledger.iter().position(|other| other.id == row.id));
        facts.ledger.insert(at + 1, row.clone());
        let report = found(&facts);
        prop_assert_eq!((report.doubled, report.lost), (1, 0));
    }

    #[test]
    fn a_ledger_row_is_gone((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, _) = some!(acknowledged(&facts, pick));
        let id = facts.orders[number].id.clone();
        let at = some!(facts.ledger.iter().position(|row| row.order_id.as_ref() == Some(&id)));
        facts.ledger.remove(at);
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.doubled), (1, 0));
        prop_assert!(has(&report, Invariant::I1), "the chain is torn");
    }

    #[test]
    fn an_order_was_carried_out_twice((steps, pick) in world(), by_trace: bool) {
        let mut facts = World::after(&steps);
        let (number, key) = some!(acknowledged(&facts, pick));
        let mut copy = facts.orders[number].clone();
        copy.id = "the-second-one".to_owned();
        copy.cancelled = false;
        for line in &copy.lines {
            let stock = some!(facts.stock.iter_mut().find(|stock| stock.sku == line.sku));
            prop_assume!(stock.on_hand >= line.quantity);
            stock.on_hand -= line.quantity;
            let mut row = some!(facts.ledger.last().cloned());
            row.id += 1;
            row.token = row.token.map(|token| token + 1);
            stock.fence = row.token.unwrap_or_default();
            row.lock_node = Some("another holder".to_owned());
            (row.sku, row.kind, row.order_id) = (line.sku.clone(), Kind::Order, Some(copy.id.clone()));
            (row.delta, row.on_hand_after) = (-line.quantity, stock.on_hand);
            row.at += 1.0;
            facts.ledger.push(row);
        }
        if !by_trace {
            copy.trace_id = String::new();
            let records = history(&mut facts);
            let first = some!(records.iter().find(|r| r.key == key && r.op == Op::Order && r.outcome() == Outcome::Accepted));
            let second = Record { order_id: Some(copy.id.clone()), attempt: 9, trace_id: None, ..first.clone() };
            records.push(second);
        }
        let units: i64 = copy.lines.iter().map(|line| line.quantity).sum();
        facts.orders.push(copy);
        let report = found(&facts);
        prop_assert_eq!((report.doubled, report.lost, report.oversold, report.undersold), (1, 0, 0, units));
    }

    #[test]
    fn the_stock_is_too_high_or_too_low((steps, pick) in world(), by in 1..9_i64, up: bool) {
        let mut facts = World::after(&steps);
        let skus = facts.stock.len();
        let stock = &mut facts.stock[pick % skus];
        prop_assume!(up || stock.on_hand >= by);
        stock.on_hand += if up { by } else { -by };
        let report = found(&facts);
        prop_assert_eq!((report.oversold, report.undersold), if up { (by, 0) } else { (0, by) });
        prop_assert_eq!((report.lost, report.doubled, report.lost_updates), (0, 0, 1));
    }

    #[test]
    fn the_stock_went_below_zero((steps, pick) in world(), below in 1..9_i64) {
        let mut facts = World::after(&steps);
        // The books agree with one another; only there was less than was sold.
        let skus = facts.stock.len();
        let sku = facts.stock[pick % skus].sku.clone();
        let by = facts.stock[pick % skus].on_hand + below;
        facts.stock[pick % skus].on_hand -= by;
        facts.history = None;
        // Moved from the last setting on, so that every change stays as it was.
        let rows: Vec<_> = facts.ledger.iter_mut().filter(|row| row.sku == sku).collect();
        for row in rows.into_iter().rev() {
            row.on_hand_after -= by;
            if row.kind == Kind::Set {
                row.delta -= by;
                break;
            }
        }
        let report = found(&facts);
        prop_assert_eq!((report.oversold, report.undersold, report.lost_updates), (below, 0, 0));
    }

    #[test]
    fn two_faults_make_up_for_each_other((steps, pick) in world(), by in 1..5_i64) {
        let mut facts = World::after(&steps);
        let at = 3 + some!(pick.checked_rem(facts.ledger.len() - 3));
        prop_assume!(facts.ledger[at].kind != Kind::Set);
        facts.ledger[at].on_hand_after += by;
        // What the ledger tells falsely would also make refusals look wrong.
        facts.history = None;
        let report = found(&facts);
        prop_assert_eq!((report.oversold, report.undersold, report.lost_updates), (0, 0, 2));
    }

    #[test]
    fn something_is_left((steps, _) in world(), kind in 0..4_usize) {
        let mut facts = World::after(&steps);
        match kind {
            0 => some!(facts.locks.as_mut()).nodes.push("/locks/stock:sku-0/_c_x-lock-0000000007".to_owned()),
            1 => some!(facts.locks.as_mut()).watches = Some((6, 8)),
            2 => some!(facts.sessions.as_mut()).transactions.push("pid 7".to_owned()),
            _ => some!(facts.sessions.as_mut()).advisory_locks.push("pid 7".to_owned()),
        }
        let report = found(&facts);
        let figures = [report.leftover_nodes, report.leftover_watches, report.open_transactions, report.advisory_locks];
        prop_assert_eq!(figures, [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]][kind]);
        prop_assert_eq!(report.findings.len(), 1);
    }

    #[test]
    fn somebody_was_refused_what_was_there((steps, pick) in world(), over in 0..5_i64, named: bool) {
        let mut facts = World::after(&steps);
        let skus = facts.stock.len();
        let stock = facts.stock[pick % skus].clone();
        prop_assume!(stock.on_hand > 0);
        let refused = |facts: &Facts, units| {
            let request = late(facts, "refused", vec![Line::new(&stock.sku, units)])?;
            let mut refusal = Answer::out_of_stock(&stock.sku, 0).of(&request);
            if !named {
                (refusal.short_sku, refusal.available) = (None, None);
            }
            Some(refusal)
        };
        let units = (stock.on_hand - over).max(1);
        let refusal = some!(refused(&facts, units));
        history(&mut facts).push(refusal);
        // The last change may be as late as the refusal; only what was surely committed accuses.
        prop_assume!(facts.ledger.iter().rev().find(|row| row.sku == stock.sku).is_some_and(|row| {
            row.kind == Kind::Set || row.delta < 0 || row.on_hand_after - row.delta >= units
        }));
        let settled = Tolerance { commit_lag: std::time::Duration::from_millis(5), ..Tolerance::default() };
        let report = judge(&facts, settled);
        prop_assert_eq!((report.wrong_refusals, report.undersold, report.oversold), (1, units, 0));
        prop_assert_eq!(report.verdict, Verdict::Invalid);

        history(&mut facts).pop();
        let refusal = some!(refused(&facts, stock.on_hand + 1 + over));
        history(&mut facts).push(refusal);
        let report = judge(&facts, settled);
        prop_assert_eq!(report.wrong_refusals, 0);
        prop_assert_eq!(&report.findings, &[]);
    }

    #[test]
    fn a_refusal_contradicts_itself((steps, _) in world(), units in 1..5_i64) {
        let mut facts = World::after(&steps);
        let request = some!(late(&facts, "refused", vec![Line::new("sku-0", units)]));
        history(&mut facts).push(Answer::out_of_stock("sku-0", units).of(&request));
        let report = found(&facts);
        prop_assert_eq!((report.wrong_refusals, report.undersold), (1, units));
    }

    #[test]
    fn an_order_stands_that_was_said_not_to((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, key) = some!(acknowledged(&facts, pick));
        let units: i64 = facts.orders[number].lines.iter().map(|line| line.quantity).sum();
        let cancelled = facts.orders[number].cancelled;
        for record in history(&mut facts).iter_mut().filter(|record| record.op == Op::Order && record.key == key) {
            (record.status, record.placed, record.order_id) = (503, Some(Placed::NotPlaced), None);
        }
        let report = found(&facts);
        prop_assert_eq!((report.phantom, report.lost, report.doubled, report.oversold), (1, 0, 0, 0));
        prop_assert!(cancelled || report.undersold == units);
    }

    #[test]
    fn a_key_was_acknowledged_and_refused((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (_, key) = some!(acknowledged(&facts, pick));
        let records = history(&mut facts);
        let first = some!(records.iter().find(|record| record.op == Op::Order && record.key == key)).clone();
        records.push(Answer::out_of_stock("sku-0", 0).of(&Record { order_id: None, ..first }));
        let report = found(&facts);
        prop_assert_eq!(report.contradicted, 1);
    }

    #[test]
    fn two_keys_were_answered_with_one_order((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, key) = some!(acknowledged(&facts, pick));
        let units: i64 = facts.orders[number].lines.iter().map(|line| line.quantity).sum();
        let records = history(&mut facts);
        let first = some!(records.iter().find(|r| r.op == Op::Order && r.key == key && r.outcome() == Outcome::Accepted)).clone();
        records.push(Record { key: "zz another".to_owned(), trace_id: None, ..first });
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.oversold), (1, units));
    }

    #[test]
    fn an_order_holds_other_lines_than_ordered((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let (number, _) = some!(acknowledged(&facts, pick));
        facts.orders[number].lines[0].quantity += 1;
        let report = found(&facts);
        prop_assert!(report.mismatched == 1 && report.lost == 0 && report.doubled == 0);
    }

    #[test]
    fn a_cancel_was_acknowledged_and_not_done((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let cancelled: HashSet<_> = facts.orders.iter().filter(|o| o.cancelled).map(|o| o.id.clone()).collect();
        let live: Vec<_> = facts.orders.iter().filter(|order| !cancelled.contains(&order.id)).cloned().collect();
        let order = some!(live.get(some!(pick.checked_rem(live.len()))));
        let record = some!(late(&facts, "cancel", Vec::new()));
        history(&mut facts).push(Record { op: Op::Cancel, status: 200, order_id: Some(order.id.clone()), ..record });
        let report = found(&facts);
        let units: i64 = order.lines.iter().map(|line| line.quantity).sum();
        prop_assert_eq!((report.lost, report.undersold, report.oversold), (1, units, 0));
    }

    #[test]
    fn a_cancel_gave_back_twice((steps, pick) in world()) {
        let mut facts = World::after(&steps);
        let rows: Vec<_> = facts.ledger.iter().filter(|row| row.kind == Kind::Cancel).cloned().collect();
        let row = some!(rows.get(some!(pick.checked_rem(rows.len())))).clone();
        let stock = some!(facts.stock.iter_mut().find(|stock| stock.sku == row.sku));
        stock.on_hand += row.delta;
        let last = some!(facts.ledger.last()).clone();
        let again = lab::audit::facts::LedgerRow {
            id: last.id + 1,
            on_hand_after: stock.on_hand,
            token: last.token.map(|token| token + 1),
            lock_node: Some("later".to_owned()),
            at: last.at + 1.0,
            ..row
        };
        stock.fence = again.token.unwrap_or_default();
        facts.ledger.push(again);
        let report = found(&facts);
        prop_assert_eq!((report.doubled, report.lost, report.lost_updates), (1, 0, 0));
    }

    #[test]
    fn a_restock_or_a_setting_was_acknowledged_and_not_done((steps, _) in world(), restock: bool) {
        let mut facts = World::after(&steps);
        let record = some!(late(&facts, "change", vec![Line::new("sku-0", 7)]));
        let op = if restock { Op::Restock } else { Op::Set };
        history(&mut facts).push(Record { op, status: 200, ..record });
        let report = found(&facts);
        prop_assert_eq!((report.lost, report.undersold), (1, if restock { 7 } else { 0 }));
    }

    #[test]
    fn a_kept_reply_names_no_order((steps, _) in world()) {
        let mut facts = World::after(&steps);
        facts.keys.push(KeyRow { key: "somebody's".to_owned(), order_id: Some("no-such-order".to_owned()) });
        prop_assert_eq!(found(&facts).lost, 1);
    }
}

#[test]
fn findings_are_bounded_and_figures_are_not() {
    let mut facts = World::after(&[]);
    facts.locks.as_mut().expect("locks").nodes = (0..200).map(|node| format!("/locks/a/{node}")).collect();
    let report = found(&facts);
    assert_eq!((report.leftover_nodes, report.findings.len(), report.findings_omitted), (200, 50, 150));
}
