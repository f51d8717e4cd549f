//! Nobody buys what is not there, and nobody is refused what is.

use futures::future::join_all;

use crate::support::{World, clients, until_held};

async fn last_unit(mode: &str) -> (World, Vec<u16>) {
    let world = World::new().await;
    let fleet = world.fleet(mode, |config| config.replicas = 3).await;
    let clients = clients(&fleet);
    clients[0].set("a", 1).await;
    let replies = join_all((0..100).map(|i| clients[i % 3].order(&[("a", 1)], None))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    (world, statuses)
}

/// Case 34.
#[tokio::test]
async fn the_last_unit_is_sold_once_in_every_mode_with_a_lock() {
    for mode in ["zk-fair", "zk-simple", "zk-rw", "zk-rw-broadcast"] {
        let (world, statuses) = last_unit(mode).await;
        let sold = statuses.iter().filter(|status| **status == 201).count();
        let refused = statuses.iter().filter(|status| **status == 409).count();
        assert_eq!((sold, refused), (1, 99), "{mode}: {statuses:?}");
        assert_eq!(world.scalar("SELECT on_hand FROM stock").await, 0, "{mode}");
        world.assert_sound().await;
    }
}

/// A consistent read waits for the order that is under way, and readers do not wait for one another.
#[tokio::test]
async fn a_consistent_read_waits_for_writers_and_not_for_readers() {
    for mode in ["zk-rw", "zk-rw-broadcast"] {
        let world = World::new().await;
        let fleet = world.fleet(mode, |config| config.replicas = 2).await;
        let clients = clients(&fleet);
        clients[0].set("a", 10).await;
        clients[0].set_work(700).await;
        let reads = async {
            until_held(&world.zookeeper, "a").await;
            let plain = clients[1].get("/stock/a").await;
            let consistent = join_all((0..8).map(|_| clients[1].get("/stock/a?consistent=true"))).await;
            (plain, consistent)
        };
        let (order, (plain, consistent)) = tokio::join!(clients[0].order(&[("a", 4)], None), reads);
        assert_eq!(order.status, 201, "{order:?}");
        assert_eq!(plain.json["on_hand"], 10, "{mode}: a plain read does not wait");
        for read in consistent {
            assert_eq!((read.status, &read.json["on_hand"]), (200, &6.into()), "{mode}: {read:?}");
        }
        let wrong = clients[1].get("/stock/a?consistent=maybe").await;
        assert_eq!((wrong.status, &wrong.json["field"]), (422, &"consistent".into()), "{wrong:?}");
        world.assert_sound().await;
    }
}

/// Why the lock is there.
#[tokio::test]
async fn without_a_lock_units_are_sold_that_were_not_there() {
    let world = World::new().await;
    let fleet = world.fleet("none", |config| {
        config.replicas = 3;
        config.work = std::time::Duration::from_millis(20);
    });
    let fleet = fleet.await;
    let clients = clients(&fleet);
    clients[0].set("a", 5).await;
    let replies = join_all((0..30).map(|i| clients[i % 3].order(&[("a", 1)], None))).await;
    let sold = replies.iter().filter(|reply| reply.status == 201).count();
    assert!(sold > 5, "{sold}");
    let lost = world.scalar("SELECT count(*) FROM audit_stock_balance WHERE difference <> 0").await;
    assert_eq!(lost, 1, "the audit view finds the lost updates");
}

/// Case 42: orders, cancellations and restocks at the same time; in the end everything adds up and nothing was refused
/// while it was there.
#[tokio::test]
async fn nothing_is_refused_while_it_is_there() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 3).await;
    let clients = &clients(&fleet);
    for sku in ["a", "b", "c"] {
        clients[0].set(sku, 20).await;
    }
    // Opposite orders of SKUs: no deadlock (case 23).
    let bought = join_all((0..45_usize).map(|i| async move {
        let (first, second) = [("a", "b"), ("b", "c"), ("c", "a")][i % 3];
        clients[i % 3].order(&[(first, 1), (second, 1)], None).await
    }));
    let bought = bought.await;
    let mut accepted = 0;
    for reply in &bought {
        match reply.status {
            201 => accepted += 1,
            409 => assert_eq!(reply.json["available"], 0, "{reply:?}"),
            _ => panic!("{reply:?}"),
        }
    }
    // 60 units of three SKUs, two different ones an order: nobody can have stopped before 20 orders.
    assert!(accepted >= 20, "{accepted}");
    let left = world.scalar("SELECT sum(on_hand)::bigint FROM stock").await;
    assert_eq!(left, 60 - 2 * accepted);
    let ids: Vec<_> =
        bought.iter().filter(|r| r.status == 201).map(|r| r.json["id"].as_str().unwrap()).collect();
    let cancelled = join_all(ids.iter().enumerate().map(|(i, id)| clients[i % 3].cancel(id))).await;
    assert!(cancelled.iter().all(|reply| reply.status == 200), "{cancelled:?}");
    assert_eq!(world.scalar("SELECT sum(on_hand)::bigint FROM stock").await, 60);
    world.assert_sound().await;
}
