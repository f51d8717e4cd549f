//! The ensemble elects, survives the loss of one server, starts again.

use stack::{RunDir, ZooKeeper, ZooKeeperConfig};

use crate::until;

#[tokio::test]
async fn an_ensemble_survives_the_loss_of_its_leader_and_restarts() {
    let dir = RunDir::disposable("test").expect("a folder");
    let zookeeper = ZooKeeper::start(&dir, ZooKeeperConfig::default()).await.expect("it starts");
    let leader = zookeeper.leader().await.expect("it has elected one");
    assert_eq!(zookeeper.connect_string("/shop").matches("127.0.0.1:").count(), 3);
    assert_eq!(zookeeper.watch_count().await.expect("all answer"), 0);

    zookeeper.stop_server(leader).await;
    until("another leads", || async { zookeeper.leader().await.is_some_and(|other| other != leader) }).await;
    assert_eq!(zookeeper.watch_count().await.expect("those that run answer"), 0);
    zookeeper.start_server(leader).await.expect("it comes back");
    let mode = zookeeper.four_letter(leader, "srvr").await.expect("it answers");
    assert!(mode.contains("Mode: follower"), "{mode}");

    zookeeper.stop_all().await;
    assert_eq!(zookeeper.leader().await, None);
    let refused = zookeeper.four_letter(0, "ruok").await.expect_err("nobody is there").to_string();
    assert!(refused.contains("zookeeper-1") && refused.contains("ruok"), "{refused}");
    zookeeper.start_all().await.expect("all come back");
    assert!(zookeeper.leader().await.is_some());
    assert!(dir.watchdog().deaths().is_empty(), "all of it was asked for");
}

#[tokio::test]
async fn one_server_stands_alone_and_can_be_frozen() {
    let dir = RunDir::disposable("test").expect("a folder");
    let config = ZooKeeperConfig { servers: 1, ..Default::default() };
    let zookeeper = ZooKeeper::start(&dir, config).await.expect("it starts");
    assert_eq!(zookeeper.leader().await, Some(0));
    let settings = zookeeper.four_letter(0, "conf").await.expect("it answers");
    for line in ["tickTime=500", "minSessionTimeout=1000", "maxSessionTimeout=60000", "maxClientCnxns=0"] {
        assert!(settings.contains(line), "{line} in {settings}");
    }
    zookeeper.server(0).pause();
    assert!(zookeeper.four_letter(0, "ruok").await.is_err(), "a frozen server answers nothing");
    zookeeper.server(0).resume();
    assert_eq!(zookeeper.four_letter(0, "ruok").await.expect("it answers again"), "imok");
}
