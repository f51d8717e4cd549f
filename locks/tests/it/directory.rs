//! Lock directories come, go and are meddled with.

use std::time::Duration;

use zk_locks::{Lost, Recipe};
use zookeeper_client as zk;

use crate::support::{EXCLUSIVE, FAIR, Place, SIMPLE, SOON, config, connected, eventually, lock, soon};

/// Case 10: the parent is removed under waiters.
#[tokio::test]
async fn a_directory_that_is_removed_under_waiters_hangs_nobody() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let session = place.session("one").await;
        let guard = lock(&session, role).acquire(soon()).await.unwrap();
        let waiter = tokio::spawn({
            let lock = lock(&session, role);
            async move { lock.acquire(soon()).await }
        });
        if role != SIMPLE {
            place.wait_for_nodes(2).await;
        }
        // Until the directory is gone: a waiter of `simple` may take the place in between.
        eventually(
            SOON,
            async || {
                for node in place.nodes().await {
                    let path = format!("{}/{node}", place.directory());
                    assert!(matches!(
                        place.outsider.delete(&path, None).await,
                        Ok(()) | Err(zk::Error::NoNode)
                    ));
                }
                let removed = place.outsider.delete(&place.directory(), None).await;
                matches!(removed, Ok(()) | Err(zk::Error::NoNode)) || role == SIMPLE
            },
            "the directory is removed",
        )
        .await;
        tokio::time::timeout(SOON, guard.lost()).await.unwrap();
        match tokio::time::timeout(SOON, waiter).await.unwrap().unwrap() {
            // It took the place of a maker of the one node, and nobody removed it again.
            Ok(guard) if role == SIMPLE => drop(guard),
            // The one ahead was removed first: it held for a moment, until its own node was removed.
            Ok(guard) => {
                assert_eq!(tokio::time::timeout(SOON, guard.lost()).await.unwrap(), Lost::NodeDeleted);
            }
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        lock(&session, role).acquire(soon()).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn foreign_children_are_nobody_s_business() {
    let place = Place::new().await;
    let session = place.session("one").await;
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
    let persistent = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
    for foreign in ["config", "0000000000", "x-lock-", "_c_-lock-abc"] {
        place.outsider.mkdir(&format!("{}/{foreign}", place.directory()), &persistent).await.unwrap();
    }
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
}

/// Case 27: directories of locks that nobody uses any more are removed by the server.
#[tokio::test]
async fn idle_directories_go() {
    let place = Place::new().await;
    let session = place.session("one").await;
    for sku in 0..20 {
        let lock = session.mutex(Recipe::Fair, &format!("/locks/{sku}")).unwrap();
        lock.acquire(soon()).await.unwrap().release().await.unwrap();
    }
    let locks = format!("{}/locks", place.chroot);
    eventually(
        Duration::from_secs(30),
        async || !matches!(place.outsider.list_children(&locks).await, Ok(children) if !children.is_empty()),
        "idle lock directories are removed",
    )
    .await;
}

#[tokio::test]
async fn members_are_listed_oldest_first() {
    let place = Place::new().await;
    let metadata = serde_json::json!({ "mode": "zk-fair" });
    let first = connected(config(&place.connect, "first").with_metadata(metadata.clone())).await;
    let second = place.session("second").await;
    let members = second.members().await.unwrap();
    let seen: Vec<_> = members.iter().map(|member| (member.instance.as_deref(), member.mine)).collect();
    assert_eq!(seen, [(Some("first"), false), (Some("second"), true)]);
    assert_eq!(members[0].metadata, metadata);
    first.close(SOON).await.unwrap();
    assert_eq!(second.members().await.unwrap().len(), 1);
}
