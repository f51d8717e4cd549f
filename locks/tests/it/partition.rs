//! The holder's server is cut off from its leader and goes on answering reads and pings. The worst of partitions.

use std::time::Duration;

use stack::{RunDir, ZooKeeper, ZooKeeperConfig};
use tokio::time::Instant;
use zk_locks::{Acquire, Lost, Role, RwRecipe};
use zookeeper_client as zk;

use crate::support::{FAIR, SIMPLE, SOON, config, connected, eventually, lock, soon};

/// A new leader, and whoever waited for it, within this time on any machine.
const ELECTED: Duration = Duration::from_mins(1);

/// How many partitions; `ZK_LOCKS_PARTITIONS=20` for as many as one has time for.
fn rounds() -> usize {
    std::env::var("ZK_LOCKS_PARTITIONS").map_or(3, |rounds| rounds.parse().unwrap())
}

/// A session whose only server is that one.
fn through(zookeeper: &ZooKeeper, server: usize) -> String {
    format!("{}/partition", zookeeper.address(server))
}

/// Case 43: the loss is told before another can hold, and not by the server: reads of the lost node still succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_from_its_leader_does_not_fool_the_holder() {
    let dir = RunDir::disposable("partition").unwrap();
    let ensemble = ZooKeeperConfig { cuttable: true, ..ZooKeeperConfig::default() };
    let zookeeper = ZooKeeper::start(&dir, ensemble).await.unwrap();
    let roles = [FAIR, SIMPLE, Role::Write(RwRecipe::Fair), Role::Write(RwRecipe::Broadcast)];
    let mut fooled = 0;
    for round in 0..rounds() {
        let role = roles[round % roles.len()];
        let leader = zookeeper.leader().await.unwrap();
        // The leader itself in some rounds, a follower in the others.
        let cut = if round % 3 == 2 { leader } else { (leader + 1 + round % 2) % 3 };
        let victim = connected(config(&through(&zookeeper, cut), "victim")).await;
        let elsewhere: Vec<_> = (0..3)
            .filter(|server| *server != cut)
            .map(|server| zookeeper.address(server).to_string())
            .collect();
        let other = connected(config(&format!("{}/partition", elsewhere.join(",")), "other")).await;
        let guard = lock(&victim, role).acquire(soon()).await.unwrap();
        let next = tokio::spawn({
            let lock = lock(&other, role);
            async move {
                loop {
                    match lock.acquire(Acquire::within(ELECTED)).await {
                        Ok(guard) => return (Instant::now(), guard),
                        // Without a leader nobody's session is safe, the bystander's included.
                        Err(error) => assert!(error.is_retryable(), "{error:?}"),
                    }
                }
            }
        });
        // A plain client on the same server, which believes what it reads.
        let reader = zk::Client::connect(&zookeeper.address(cut).to_string()).await.unwrap();
        let node = guard.node();
        zookeeper.isolate(cut).unwrap();
        let lost = tokio::spawn(async move {
            let reason = guard.lost().await;
            (Instant::now(), reason, guard)
        });
        let (lost_at, reason, guard) = tokio::time::timeout(SOON, lost).await.unwrap().unwrap();
        fooled += usize::from(matches!(reader.check_stat(&node).await, Ok(Some(_))));
        let (held_at, next) = tokio::time::timeout(ELECTED, next).await.unwrap().unwrap();
        assert_eq!(reason, Lost::LeaseRunOut, "{role} in round {round}");
        assert!(
            lost_at < held_at,
            "{role} in round {round}: lost {:?} after the other held",
            lost_at - held_at
        );
        assert!(next.token() > guard.token());
        drop(guard);
        zookeeper.reunite(cut).unwrap();
        next.release().await.unwrap();
        eventually(ELECTED, async || all_serve(&zookeeper).await, "the ensemble is whole again").await;
        victim.close(SOON).await.unwrap();
        other.close(SOON).await.unwrap();
    }
    assert!(fooled > 0, "no read of a cut-off server succeeded: the fault was not the one that is meant");
}

async fn all_serve(zookeeper: &ZooKeeper) -> bool {
    for server in 0..zookeeper.servers() {
        if !matches!(zookeeper.four_letter(server, "srvr").await, Ok(answer) if answer.contains("Mode: ")) {
            return false;
        }
    }
    true
}
