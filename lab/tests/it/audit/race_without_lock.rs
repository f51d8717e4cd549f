//! What `none` with the plain writer does: everybody reads, works and writes the number computed.

use lab::{
    audit::{
        Tolerance,
        facts::{Facts, KeyRow, Kind, LedgerRow, OrderRow, StockRow},
        judge,
    },
    verdict::Verdict,
};
use loadtest::history::{Line, Op, Record};
use proptest::prelude::*;

/// Each order reads at one moment and writes at a later one, in random order.
fn race(start: i64, orders: &[(u32, u32)]) -> Facts {
    let mut moments: Vec<(u32, bool, usize)> = Vec::new();
    for (order, (read, work)) in orders.iter().enumerate() {
        moments.push((*read, true, order));
        moments.push((read + work, false, order));
    }
    moments.sort_unstable();
    let mut facts = Facts { history: Some(Vec::new()), ..Facts::default() };
    let row = |id, kind, order_id, delta, on_hand_after, at| LedgerRow {
        id,
        sku: "hot".to_owned(),
        kind,
        order_id,
        delta,
        on_hand_after,
        token: None,
        lock_node: None,
        at,
    };
    facts.ledger.push(row(1, Kind::Set, None, start, start, -10_000.0));
    let mut on_hand = start;
    let mut seen = vec![0; orders.len()];
    for (moment, reads, order) in moments {
        if reads {
            seen[order] = on_hand;
            continue;
        }
        if seen[order] < 1 {
            continue;
        }
        on_hand = seen[order] - 1;
        let (id, key, trace) = (format!("order-{order}"), format!("key-{order}"), format!("trace-{order}"));
        let lines = vec![Line::new("hot", 1)];
        let next = 1 + i64::try_from(facts.ledger.len()).expect("few rows");
        facts.ledger.push(row(next, Kind::Order, Some(id.clone()), -1, on_hand, f64::from(moment)));
        facts.keys.push(KeyRow { key: key.clone(), order_id: Some(id.clone()) });
        facts.orders.push(OrderRow {
            id: id.clone(),
            cancelled: false,
            trace_id: trace.clone(),
            lines: lines.clone(),
        });
        facts.history.as_mut().expect("a history").push(Record {
            op: Op::Order,
            key,
            lines,
            status: 201,
            order_id: Some(id),
            trace_id: Some(trace),
            sent_at: f64::from(orders[order].0) - 1.0,
            received_at: f64::from(moment) + 1.0,
            ..serde_json::from_value(serde_json::json!({
                "run": "race", "user": 0, "host": "", "op": "order", "key": "", "attempt": 1,
                "sent_at": 0.0, "received_at": 0.0, "status": 0
            }))
            .expect("a record")
        });
    }
    facts.stock.push(StockRow { sku: "hot".to_owned(), on_hand, fence: 0 });
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_units_oversold_are_those_acknowledged_and_still_offered_beyond_the_start(
        start in 1..30_i64,
        orders in prop::collection::vec((0..2000_u32, 1..200_u32), 1..60),
    ) {
        let facts = race(start, &orders);
        let report = judge(&facts, Tolerance::default());
        let beyond = i64::try_from(facts.orders.len()).expect("few orders") + facts.stock[0].on_hand - start;
        prop_assert_eq!(report.oversold, beyond.max(0));
        prop_assert_eq!((report.lost, report.doubled, report.token_regressions, report.phantom), (0, 0, 0, 0));
        prop_assert_eq!(report.verdict, if report.lost_updates > 0 { Verdict::Invalid } else { Verdict::Valid });
        prop_assert!(beyond == 0 || report.lost_updates > 0);
    }
}

#[test]
fn a_hundred_who_read_at_once_buy_one_unit_each_of_one() {
    let orders: Vec<_> = (0..100).map(|order| (0, 50 + order)).collect();
    let report = judge(&race(1, &orders), Tolerance::default());
    assert_eq!((report.oversold, report.verdict), (99, Verdict::Invalid));
    assert_eq!(
        report.findings[0].text,
        "99 units oversold: 1 at the start + 0 restocked + 0 cancelled − 100 acknowledged ≠ 0 on hand"
    );
}
