//! Replies are lost, whether the request was applied or not. Unknown is resolved, never guessed.

use std::time::Duration;

use stack::{Cut, Silence};

use crate::support::{EXCLUSIVE, Place, SIMPLE, lock, soon};

/// Cases 6 and 20: a create that was applied and never answered must not block its own contender.
#[tokio::test]
async fn a_create_whose_reply_is_lost_is_found_again() {
    for role in EXCLUSIVE {
        for how in [Cut::Fin, Cut::Reset] {
            let place = Place::new().await;
            let (session, proxy) = place.proxied("one").await;
            // The directory exists, so that the create is what gets lost.
            drop(lock(&session, role).acquire(soon()).await.unwrap());
            place.is_empty_within(Duration::from_secs(2)).await;
            proxy.silence(Silence::Replies).unwrap();
            let acquiring = tokio::spawn({
                let lock = lock(&session, role);
                async move { lock.acquire(soon()).await }
            });
            place.wait_for_nodes(1).await;
            proxy.restore().unwrap();
            proxy.drop_connections(how).unwrap();
            let guard = acquiring.await.unwrap().unwrap();
            assert_eq!(place.nodes().await.len(), 1, "one contender, one node");
            assert_eq!(guard.check(), Ok(()));
            guard.release().await.unwrap();
            place.is_empty_within(Duration::ZERO).await;
        }
    }
}

/// The same, and nobody waits for the answer any more.
#[tokio::test]
async fn a_create_whose_reply_is_lost_and_that_nobody_wants_goes() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let (session, proxy) = place.proxied("one").await;
        drop(lock(&session, role).acquire(soon()).await.unwrap());
        place.is_empty_within(Duration::from_secs(2)).await;
        proxy.silence(Silence::Replies).unwrap();
        let acquiring = tokio::spawn({
            let lock = lock(&session, role);
            async move { lock.acquire(soon()).await }
        });
        place.wait_for_nodes(1).await;
        acquiring.abort();
        proxy.restore().unwrap();
        proxy.drop_connections(Cut::Reset).unwrap();
        place.is_empty_within(Duration::from_secs(2)).await;
    }
}

/// Case 14: the delete of a release is lost while the connection is away, and is made up for.
#[tokio::test]
async fn a_delete_that_is_lost_is_made_up_for() {
    for role in EXCLUSIVE {
        for silence in [Silence::Requests, Silence::Replies] {
            let place = Place::new().await;
            let (session, proxy) = place.proxied("one").await;
            let guard = lock(&session, role).acquire(soon()).await.unwrap();
            proxy.silence(silence).unwrap();
            let release = tokio::spawn(guard.release());
            // Applied or not, the client hears nothing until the connection is gone.
            tokio::time::sleep(Duration::from_millis(100)).await;
            proxy.restore().unwrap();
            proxy.drop_connections(Cut::Reset).unwrap();
            release.await.unwrap().unwrap();
            place.is_empty_within(Duration::ZERO).await;
        }
    }
}

/// Case 6: twenty cuts in a row while waiting, and never more than one node per contender.
#[tokio::test]
async fn twenty_cuts_make_no_second_node() {
    for role in EXCLUSIVE {
        let place = Place::new().await;
        let holder = place.session("holder").await;
        let (waiter, proxy) = place.proxied("waiter").await;
        let guard = lock(&holder, role).acquire(soon()).await.unwrap();
        let waiting = tokio::spawn({
            let lock = lock(&waiter, role);
            async move { lock.acquire(soon()).await }
        });
        let expected = if role == SIMPLE { 1 } else { 2 };
        place.wait_for_nodes(expected).await;
        for cut in 0..20 {
            proxy.drop_connections(if cut % 2 == 0 { Cut::Fin } else { Cut::Reset }).unwrap();
            let mut states = waiter.watch_state();
            states.wait_for(zk_locks::SessionState::is_connected).await.unwrap();
            assert!(place.nodes().await.len() <= expected, "a second node after cut {cut}");
        }
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap().release().await.unwrap();
        place.is_empty_within(Duration::ZERO).await;
    }
}
