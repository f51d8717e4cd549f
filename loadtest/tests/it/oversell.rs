//! The burst: nothing lost, nothing doubled and everything recorded, whatever becomes of replies.

use std::collections::{BTreeMap, HashSet};

use loadtest::history::{Claim, Op, Outcome, by_key};

use crate::{
    shop::{Fault, Shop},
    tool::loadtest,
};

#[tokio::test]
async fn a_burst_sells_out_sends_the_tail_and_ends_early() {
    let shop = Shop::open(3, |_, _| Fault::None).await;
    let ran = loadtest(&["oversell", "--users", "20", "--stock", "100", "--tail", "30"], &shop.hosts).await;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.summary["ended"], "sold-out");
    assert_eq!(ran.summary["orders"]["accepted"], 100);
    assert_eq!(ran.summary["units_accepted"]["sku-1"], 100);
    let refused = ran.summary["orders"]["out_of_stock"].as_u64().expect("a count");
    // The first refusal, the tail, and what the other users had under way.
    assert!((31..=50).contains(&refused), "{refused}");
    let books = shop.books();
    assert_eq!(ran.history.len() as u64, books.requests(), "a record for every request");
    assert_eq!(ran.summary["goose_requests"].as_u64(), Some(books.requests() - 1), "all but the set-up");
    let hosts: HashSet<_> = ran.history.iter().map(|record| &record.host).collect();
    assert_eq!(hosts.len(), 3, "users are spread");
    let users: HashSet<_> = ran.history.iter().map(|record| record.user).collect();
    assert_eq!(users.len(), 20);
}

#[tokio::test]
async fn every_request_is_the_root_of_a_trace_of_its_own() {
    let shop = Shop::open(1, |_, _| Fault::None).await;
    let ran = loadtest(&["oversell", "--users", "5", "--stock", "10"], &shop.hosts).await;
    let books = shop.books();
    let sent: HashSet<_> = books.traceparents.iter().collect();
    assert_eq!(sent.len(), ran.history.len());
    for record in &ran.history {
        let trace = record.trace_id.as_ref().expect("a trace");
        assert!(sent.iter().any(|sent| sent[3..35] == **trace && sent.ends_with("-01")), "{trace}");
    }
}

#[tokio::test]
async fn lost_replies_refusals_and_unknowns_are_retried_with_the_same_key_and_settle() {
    let shop = Shop::open(3, |_, request| match request % 7 {
        1 => Fault::LoseReply,
        2 => Fault::LoseRequest,
        3 => Fault::Refuse,
        4 => Fault::SayUnknown,
        _ => Fault::None,
    })
    .await;
    let ran = loadtest(
        &["oversell", "--users", "10", "--stock", "60", "--quantity-max", "3", "--tail", "10"],
        &shop.hosts,
    )
    .await;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.summary["orders"]["unknown"], 0, "{}", ran.stderr);
    assert_eq!(ran.summary["orders"]["failed"], 0, "{}", ran.stderr);
    let books = shop.books();
    assert_eq!(ran.history.len() as u64, books.requests(), "a record for every request");
    let keys = by_key(&ran.history);
    let accepted: HashSet<_> = keys
        .iter()
        .filter(|(_, key)| key.claim() == Claim::Accepted)
        .map(|(key, _)| (*key).to_owned())
        .collect();
    let placed: HashSet<_> = books.placed.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(accepted, placed, "the client knows exactly what was placed");
    assert_eq!(books.stock["sku-1"], 0);
    assert_eq!(ran.summary["units_accepted"]["sku-1"], 60);
    // Retries went to another replica, with the next number.
    let mut by: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in ran.history.iter().filter(|record| record.op == Op::Order) {
        by.entry(&record.key).or_default().push(record);
    }
    assert!(by.values().any(|attempts| attempts.len() > 1));
    for attempts in by.values() {
        for (index, pair) in attempts.windows(2).enumerate() {
            assert_ne!(pair[0].host, pair[1].host);
            assert_eq!(pair[1].attempt as usize, index + 2);
            assert_eq!(pair[0].lines, pair[1].lines);
            assert!(pair[0].outcome().wants_retry());
        }
    }
}

#[tokio::test]
async fn a_replica_that_hangs_costs_an_attempt_and_not_an_order() {
    let shop = Shop::open(3, |replica, _| if replica == 1 { Fault::Hang } else { Fault::None }).await;
    let arguments = ["oversell", "--users", "6", "--stock", "20", "--attempt-timeout-ms", "300"];
    let ran = loadtest(&arguments, &shop.hosts).await;
    assert_eq!(ran.summary["orders"]["accepted"], 20, "{}", ran.stderr);
    assert_eq!(ran.summary["orders"]["unknown"], 0);
    let hung = ran.history.iter().filter(|record| record.host == shop.hosts[1] && record.op == Op::Order);
    let hung: Vec<_> = hung.collect();
    assert!(!hung.is_empty());
    for record in hung {
        assert_eq!(record.outcome(), Outcome::Unknown);
        assert!(record.error.as_ref().expect("a reason").starts_with("timeout"), "{record:?}");
        assert!(record.received_at - record.sent_at >= 299.0);
    }
}

#[tokio::test]
async fn the_seed_decides_keys_and_quantities() {
    let mut plans = Vec::new();
    for (seed, run) in [("5", "same"), ("5", "same"), ("6", "same")] {
        let shop = Shop::open(2, |_, _| Fault::None).await;
        let ran = loadtest(
            &[
                "oversell",
                "--users",
                "4",
                "--stock",
                "40",
                "--quantity-max",
                "3",
                "--seed",
                seed,
                "--run",
                run,
            ],
            &shop.hosts,
        )
        .await;
        let mut first_of_user: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for record in ran.history.into_iter().filter(|record| record.op == Op::Order) {
            let orders = first_of_user.entry(record.user).or_default();
            if orders.len() < 3 {
                orders.push((record.key, record.lines));
            }
        }
        assert_eq!(first_of_user.len(), 4);
        plans.push(first_of_user);
    }
    assert_eq!(plans[0], plans[1]);
    assert_ne!(plans[0], plans[2]);
}
