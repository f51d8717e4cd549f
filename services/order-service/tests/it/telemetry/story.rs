//! One order reads like a story: what its spans say, and their events.

use std::collections::BTreeSet;

use futures::future::join_all;
use stack::{Cut, Proxy};

use super::{
    catalog,
    kept::NONE,
    receiver::{CLIENT, Receiver, SERVER},
    traced,
};
use crate::support::{PATIENCE, World, clients, order_body, until, until_held};

/// Under contention: the chain of an order, links between waiters and blockers, the commit before the release; and all
/// of it was flushed by SIGTERM.
#[tokio::test]
async fn the_spans_of_orders_that_wait_for_one_another() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 2, &[]).await;
    let clients = clients(&fleet);
    clients[0].set("a", 100).await;
    for client in &clients {
        client.set_work(20).await;
    }
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", parent)];
    let (first, replies) = tokio::join!(
        clients[0].send("POST", "/orders", Some(order_body(&[("a", 1)])), &headers),
        join_all((0..20).map(|i| clients[i % 2].order(&[("a", 1)], None)))
    );
    assert_eq!(first.json["trace_id"], "0af7651916cd43dd8448eb211c80319c", "the caller's trace goes on");
    for (name, exit) in fleet.stop(PATIENCE).await {
        assert!(exit.success(), "{name}: {exit}");
    }
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let mut queued = 0;
    // Who held, in the order of their tokens.
    let mut holders: Vec<(i64, String)> = Vec::new();
    for reply in replies.iter().chain([&first]) {
        let token = reply.json["lock"]["token"].as_i64().expect("a token");
        holders.push((token, reply.json["trace_id"].as_str().expect("a trace id").to_owned()));
    }
    holders.sort();
    for reply in replies.iter().chain([&first]) {
        assert_eq!(reply.status, 201, "{reply:?}");
        let trace = spans.trace(reply.json["trace_id"].as_str().expect("a trace id"));
        let server = trace.one("POST /orders");
        assert_eq!(server.kind, SERVER);
        let place = trace.one("order.place");
        assert_eq!(place.parent, server.id);
        assert_eq!(place.attribute("order.id"), reply.json["id"].as_str().unwrap());
        assert_eq!(place.attribute("order.outcome"), "accepted");
        let acquire = trace.child(place, "lock.acquire");
        assert_eq!(acquire.attribute("lock.path"), "/locks/stock:a");
        assert_eq!(acquire.attribute("lock.outcome"), "acquired");
        assert_eq!(acquire.attribute("lock.token"), reply.json["lock"]["token"].to_string());
        let deduct = trace.child(place, "stock.deduct");
        assert_eq!(deduct.attribute("stock.outcome"), "accepted");
        assert_eq!(deduct.attribute("lock.token"), acquire.attribute("lock.token"));
        let after = reply.json["lines"][0]["on_hand_after"].as_i64().expect("a number");
        assert_eq!(deduct.attribute("stock.on_hand.after"), after.to_string());
        assert_eq!(deduct.attribute("stock.on_hand.before"), (after + 1).to_string());
        assert_eq!(acquire.event("acquired").attribute("lock.token"), acquire.attribute("lock.token"));
        assert!(trace.all().all(|span| span.error.is_none()), "{trace:?}");
        for name in
            ["BEGIN", "UPDATE stock", "INSERT orders", "INSERT order_lines", "INSERT ledger", "COMMIT"]
        {
            let statement = trace.children(deduct).find(|span| span.name == name);
            let statement = statement.unwrap_or_else(|| panic!("no {name} in {trace:?}"));
            assert_eq!(
                (statement.kind, statement.attribute("db.system.name")),
                (CLIENT, "postgresql".into())
            );
            assert!(world.database_url.ends_with(&format!("/{}", statement.attribute("db.namespace"))));
            let operation = name.split(' ').next().expect("a word");
            assert_eq!(statement.attribute("db.operation.name"), operation);
            assert_eq!(statement.attribute("db.query.summary"), name);
            assert!(statement.attribute("db.query.text").starts_with(operation), "{statement:?}");
        }
        // Case 41: acquired, then everything written and committed, and only then released.
        let (commit, release) = (trace.one("COMMIT"), trace.one("lock.release"));
        assert!(acquire.end <= deduct.start && commit.end <= release.start, "{trace:?}");
        let position = reply.json["lock"]["position"].as_u64().expect("a number");
        assert_eq!(acquire.attribute("lock.position"), position.to_string());
        if position > 0 {
            queued += 1;
            let event = acquire.event(&format!("queued behind {position}"));
            // Whoever was directly ahead is the one that held last before us.
            let mine = holders.iter().position(|(_, trace)| *trace == server.trace).expect("a holder");
            let blocker = &holders[mine - 1].1;
            let blocking = spans.trace(blocker);
            let holding = blocking.one("order.place");
            assert_eq!(
                acquire.links.last().map(|link| (&link.trace, &link.span)),
                Some((blocker, &holding.id))
            );
            for told in [acquire.attribute("lock.blocker.trace_id"), event.attribute("lock.blocker.trace_id")]
            {
                assert_eq!(&told, blocker);
            }
            assert_eq!(acquire.attribute("lock.blocker"), holding.instance);
            assert!(event.attribute("lock.blocker.session").starts_with("0x"), "{event:?}");
            assert_eq!(acquire.attribute("lock.blocker.node"), event.attribute("lock.blocker.node"));
        }
    }
    assert!(queued > 5, "there was contention: {queued}");
    // One holder after the other: no acquisition ends before the release of the one before has begun.
    let mut holds: Vec<_> = replies
        .iter()
        .chain([&first])
        .map(|reply| {
            let trace = spans.trace(reply.json["trace_id"].as_str().unwrap());
            (trace.one("lock.acquire").end, trace.one("lock.release").start)
        })
        .collect();
    holds.sort_unstable();
    assert!(holds.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{holds:?}");
    assert_eq!(spans.services(), BTreeSet::from(["orders-under-test".to_owned()]));
    assert_eq!(spans.instances(), fleet.replicas().iter().map(|replica| replica.name().to_owned()).collect());
}

/// A connection that breaks while a lock is held, and one that breaks while it is waited for: both are told, with the
/// session, and neither is a loss.
#[tokio::test]
async fn a_connection_that_breaks_shows_where_it_was_held_and_where_it_was_waited_for() {
    let mut world = World::new().await;
    let (servers, chroot) = world.zookeeper.split_once('/').expect("a chroot");
    let server = servers.split(',').next().expect("a server").parse().expect("an address");
    let proxy = Proxy::start(server).expect("a proxy");
    world.zookeeper = format!("{}/{chroot}", proxy.address());
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &[]).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    client.set_work(2000).await;
    let orders: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.order(&[("a", 1)], None).await })
        })
        .collect();
    until("one holds and one waits", || async {
        let text = client.get("/metrics").await.text;
        text.contains("lock_held{recipe=\"fair\"} 1") && text.contains("lock_waiting{recipe=\"fair\"} 1")
    })
    .await;
    proxy.drop_connections(Cut::Fin).expect("dropped");
    for order in orders {
        assert_eq!(order.await.expect("no panic").status, 201);
    }
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let mut told = BTreeSet::new();
    for span in spans.all().filter(|span| span.events.iter().any(|event| event.name == "suspended")) {
        assert!(span.event("suspended").attribute("session").starts_with("0x"), "{span:?}");
        span.event("resumed");
        assert_eq!(span.error, None);
        told.insert(span.name.as_str());
    }
    assert_eq!(told, BTreeSet::from(["order.place", "lock.acquire"]));
}

/// A lost lock is an event of the order that held it, and the order is an error: kept, though nothing is sampled.
#[tokio::test]
async fn a_lost_session_is_an_event_with_its_reason() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &NONE).await;
    let client = &clients(&fleet)[0];
    client.set("a", 10).await;
    client.set_work(4000).await;
    let ordering = client.clone();
    let order = tokio::spawn(async move { ordering.order(&[("a", 1)], None).await });
    until_held(&world.zookeeper, "a").await;
    client.expire_session().await;
    let order = order.await.expect("no panic");
    assert_eq!(order.code(), "lock-lost", "{order:?}");
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let trace = spans.trace(order.json["trace_id"].as_str().expect("a trace id"));
    let place = trace.one("order.place");
    let (event, acquire) = (place.event("lock lost"), trace.one("lock.acquire"));
    assert_eq!(event.attribute("reason"), order.json["reason"].as_str().expect("a reason"));
    assert_eq!(event.attribute("lock.token"), acquire.attribute("lock.token"));
    assert_eq!(place.attribute("order.outcome"), "lock-lost");
    let error = place.error.as_deref().expect("an error");
    assert!(error.contains("/locks/stock:a") || error.contains("lock on a"), "{error}");
    assert_eq!(trace.one("lock.release").attribute("lock.outcome"), event.attribute("reason"));
}

/// A place in the queue that goes with its session ends one `lock.acquire` in error; the next one has the lock.
#[tokio::test]
async fn a_lost_place_in_the_queue_is_an_error_of_that_wait() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 2, &[]).await;
    let clients = clients(&fleet);
    clients[0].set("a", 10).await;
    clients[0].set_work(3000).await;
    let holder = clients[0].clone();
    let holder = tokio::spawn(async move { holder.order(&[("a", 1)], None).await });
    until_held(&world.zookeeper, "a").await;
    let waiter = clients[1].clone();
    let waiter = tokio::spawn(async move { waiter.order(&[("a", 1)], None).await });
    until("it waits", || async {
        clients[1].get("/metrics").await.text.contains("lock_waiting{recipe=\"fair\"} 1")
    })
    .await;
    clients[1].expire_session().await;
    assert_eq!(holder.await.expect("no panic").status, 201);
    let waiter = waiter.await.expect("no panic");
    assert_eq!(waiter.status, 201, "{waiter:?}");
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let trace = spans.trace(waiter.json["trace_id"].as_str().expect("a trace id"));
    let mut waits: Vec<_> = trace.named("lock.acquire").collect();
    waits.sort_by_key(|span| span.start);
    let [lost, won] = waits.as_slice() else { panic!("two waits: {waits:?}") };
    assert_eq!(lost.attribute("lock.outcome"), "session-lost");
    assert_eq!(lost.event("lost").attribute("reason"), "session-expired");
    assert!(lost.error.is_some());
    assert_eq!((won.attribute("lock.outcome"), &won.error), ("acquired".to_owned(), &None));
}

/// Sold out is an answer, no error; a statement that PostgreSQL refuses is an error with its code.
#[tokio::test]
async fn what_a_refused_order_and_a_refused_statement_say() {
    let world = World::new().await;
    let receiver = Receiver::start();
    let fleet = traced(&world, &receiver, 1, &[]).await;
    let client = &clients(&fleet)[0];
    client.set("a", 3).await;
    let sold_out = client.order(&[("a", 4)], None).await;
    assert_eq!(sold_out.code(), "out-of-stock");
    let mut open = world.pool.begin().await.expect("a transaction");
    sqlx::query("UPDATE stock SET on_hand = on_hand").execute(&mut *open).await.expect("locked");
    let blocked = client.order(&[("a", 1)], None).await;
    assert_eq!(blocked.code(), "unavailable", "{blocked:?}");
    open.rollback().await.expect("rolled back");
    fleet.stop(PATIENCE).await;
    let spans = receiver.spans();
    catalog::agrees(&spans);
    let trace = spans.trace(sold_out.json["trace_id"].as_str().expect("a trace id"));
    let deduct = trace.one("stock.deduct");
    assert_eq!(deduct.attribute("stock.outcome"), "out-of-stock");
    let on_hand = ["stock.on_hand.before", "stock.on_hand.after"].map(|name| deduct.attribute(name));
    assert_eq!(on_hand, ["3", "3"]);
    assert!(trace.all().all(|span| span.error.is_none()), "{trace:?}");
    let trace = spans.trace(blocked.json["trace_id"].as_str().expect("a trace id"));
    let claim = trace.one("UPDATE stock");
    for name in ["db.response.status_code", "error.type"] {
        assert_eq!(claim.attribute(name), "55P03", "{claim:?}");
    }
    for name in ["UPDATE stock", "stock.deduct", "order.place", "POST /orders"] {
        assert!(trace.one(name).error.is_some(), "{name} is an error");
    }
}
