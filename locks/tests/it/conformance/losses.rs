//! What is held or waited for is lost: told by a value, and the next one gets it.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zk_locks::{AcquireError, Lost, ReleaseError};
use zookeeper_client as zk;

use super::subject::{Held, Subject};
use super::trial::{Trial, make_way};
use crate::support::{SIMPLE, SOON, eventually, info, soon};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Expiry,
    Deletion,
}

impl Loss {
    const ALL: [Self; 2] = [Self::Expiry, Self::Deletion];

    async fn strike(self, trial: &Trial) {
        let victim = info(&trial.victim).await.id;
        match self {
            Self::Expiry => assert_eq!(trial.victim.expire().await.unwrap(), victim),
            Self::Deletion => {
                for (path, _) in trial.contenders().await.into_iter().filter(|(_, owner)| *owner == victim) {
                    match trial.place.outsider.delete(&path, None).await {
                        // Of several parts the first that goes takes the others along.
                        Ok(()) | Err(zk::Error::NoNode) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }

    const fn reason(self) -> Lost {
        match self {
            Self::Expiry => Lost::SessionExpired,
            Self::Deletion => Lost::NodeDeleted,
        }
    }
}

async fn held(subject: Subject, loss: Loss) {
    let trial = Trial::without_proxy(subject).await;
    let held = subject.acquire(&trial.victim, soon()).await.unwrap();
    loss.strike(&trial).await;
    let reason = timeout(SOON, held.lost()).await.unwrap();
    assert_eq!((reason, held.check()), (loss.reason(), Err(loss.reason())), "{subject}");
    let next = subject.acquire(&trial.other, soon()).await.unwrap();
    let told = held.release().await.unwrap_err();
    assert!(
        matches!(told, ReleaseError::Lost { reason, .. } if reason == loss.reason()),
        "{subject}: {told:?}"
    );
    assert_eq!(next.check(), Ok(()), "{subject}: who releases what is lost does not touch the next holder");
    next.release().await.unwrap();
    trial.is_clean_within(Duration::from_secs(2), &format!("{subject}, {loss:?} while holding")).await;
    trial.end().await;
}

async fn waiting(subject: Subject, loss: Loss) {
    let trial = Trial::without_proxy(subject).await;
    let rivals = trial.block().await;
    let own = info(&trial.victim).await.id;
    let mut waiter = tokio::spawn({
        let victim = trial.victim.clone();
        async move { subject.acquire(&victim, soon()).await }
    });
    if subject == Subject::Lock(SIMPLE) {
        // It has no node to wait for: it is in the queue when it watches.
        let zookeeper = trial.place.servers.zookeeper();
        let lock = format!("{}/locks", trial.place.chroot);
        let watched = async || {
            let watches = zookeeper.watches_below(&lock).await.unwrap();
            watches.iter().any(|(_, session)| *session == own)
        };
        eventually(SOON, watched, "it watches").await;
    } else {
        let queued = async || trial.contenders().await.iter().any(|(_, owner)| *owner == own);
        eventually(SOON, queued, "it is in the queue").await;
    }
    loss.strike(&trial).await;
    let told = if (subject, loss) == (Subject::Lock(SIMPLE), Loss::Deletion) {
        // Nothing of it could be deleted.
        assert!(timeout(Duration::from_millis(300), &mut waiter).await.is_err());
        None
    } else {
        Some(timeout(SOON, &mut waiter).await.unwrap().unwrap().unwrap_err())
    };
    match (&told, loss) {
        (None, _)
        | (Some(AcquireError::NodeDeleted { .. }), Loss::Deletion)
        | (Some(AcquireError::SessionLost { reason: Lost::SessionExpired, .. }), Loss::Expiry) => {}
        _ => panic!("{subject}, {loss:?}: {told:?}"),
    }
    assert!(rivals.iter().all(|rival| rival.check().is_ok()), "{subject}: the holder is not touched");
    make_way(rivals).await;
    if told.is_none() {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    trial.is_free(&format!("{subject}, {loss:?} while waiting")).await;
    trial.is_clean_within(Duration::from_secs(2), &format!("{subject}, {loss:?} while waiting")).await;
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_while_holding_is_told_and_touches_nobody_else() {
    for loss in Loss::ALL {
        futures::future::join_all(Subject::ALL.map(|subject| held(subject, loss))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_while_waiting_is_told_and_the_next_one_gets_in() {
    for loss in Loss::ALL {
        futures::future::join_all(Subject::ALL.map(|subject| waiting(subject, loss))).await;
    }
}

/// Whatever others keep beside the contenders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_nodes_in_the_directory_change_nothing() {
    for subject in Subject::ALL {
        let trial = Trial::without_proxy(subject).await;
        // So that the directories exist.
        trial.is_free("at first").await;
        let root = format!("{}{}", trial.place.chroot, crate::support::LOCK);
        let folders = if subject == Subject::Semaphore { vec!["/locks", "/leases"] } else { vec![""] };
        let options = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
        for folder in folders {
            for foreign in ["config", "x-lock-", "0000000000", "_c_-lock-00000000x1"] {
                let path = format!("{root}{folder}/{foreign}");
                trial.place.outsider.create(&path, b"", &options).await.unwrap();
            }
        }
        let rivals = trial.block().await;
        let waiter = tokio::spawn({
            let victim = trial.victim.clone();
            async move { subject.acquire(&victim, soon()).await }
        });
        sleep(Duration::from_millis(50)).await;
        make_way(rivals).await;
        let held: Held = waiter.await.unwrap().unwrap();
        assert_eq!(held.check(), Ok(()), "{subject}");
        held.release().await.unwrap();
        trial.is_clean_within(Duration::from_secs(2), &format!("{subject}")).await;
        trial.end().await;
    }
}
