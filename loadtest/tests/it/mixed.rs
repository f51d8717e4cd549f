//! Everything at once: the client's account of the stock is the server's.

use std::collections::{BTreeMap, HashSet};

use loadtest::history::{Claim, Op, Outcome, by_key};

use crate::{
    shop::{Fault, Shop},
    tool::loadtest,
};

#[tokio::test]
async fn the_clients_account_is_the_servers() {
    let shop = Shop::open(3, |_, request| match request % 11 {
        1 => Fault::LoseReply,
        2 => Fault::Refuse,
        _ => Fault::None,
    })
    .await;
    let ran = loadtest(&["mixed", "--users", "8", "--stock", "60", "--steps-max", "600"], &shop.hosts).await;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.summary["ended"], "count");
    let books = shop.books();
    assert_eq!(ran.history.len() as u64, books.requests());
    for (op, requests) in [
        ("set", books.requests["PUT stock"]),
        ("read", books.requests.iter().filter(|(k, _)| k.starts_with("GET")).map(|(_, n)| n).sum()),
    ] {
        assert_eq!(ran.summary["requests"][op].as_u64(), Some(requests), "{op}");
    }
    let keys = by_key(&ran.history);
    let mut stock: BTreeMap<String, i64> = BTreeMap::new();
    let mut ids = BTreeMap::new();
    for key in keys.values().filter(|key| key.claim() == Claim::Accepted) {
        assert_eq!(key.order_ids.len(), 1, "one id however often it was sent");
        ids.insert(key.order_ids.first().cloned().expect("an id"), key.lines.clone());
        for line in &key.lines {
            *stock.entry(line.sku.clone()).or_default() -= line.quantity;
        }
    }
    assert_eq!(ids.len(), books.placed.len());
    let done = |op| ran.history.iter().filter(move |r| r.op == op && r.outcome() == Outcome::Accepted);
    for line in done(Op::Set).chain(done(Op::Restock)).flat_map(|record| &record.lines) {
        *stock.entry(line.sku.clone()).or_default() += line.quantity;
    }
    let cancelled: HashSet<_> = done(Op::Cancel).filter_map(|record| record.order_id.clone()).collect();
    for line in cancelled.iter().flat_map(|id| &ids[id]) {
        *stock.entry(line.sku.clone()).or_default() += line.quantity;
    }
    assert_eq!(stock, books.stock);
    assert!(cancelled.len() > 5 && ran.summary["restocked"].as_i64() > Some(0));
}

#[tokio::test]
async fn duplicates_are_sent_at_once_to_two_replicas() {
    let shop = Shop::open(2, |_, _| Fault::None).await;
    let ran =
        loadtest(&["mixed", "--users", "4", "--stock", "1000", "--steps-max", "300"], &shop.hosts).await;
    let orders: Vec<_> = ran.history.iter().filter(|record| record.op == Op::Order).collect();
    let overlapping = orders.iter().any(|first| {
        orders.iter().any(|second| {
            first.key == second.key
                && first.host != second.host
                && first.sent_at < second.sent_at
                && second.sent_at < first.received_at
        })
    });
    assert!(overlapping);
}
