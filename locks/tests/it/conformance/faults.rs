//! A fault strikes at every frame of an acquire, and nobody is inside who should not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stack::{Cut, Silence, Then};
use tokio::task::JoinSet;
use tokio::time::sleep;
use zk_locks::Session;

use super::subject::{Held, Room, Subject};
use super::trial::{Trial, at_every_frame, named};
use crate::support::{SOON, soon};

/// As a user would: again, for as long as the reason has passed.
async fn acquired(subject: Subject, session: &Session, what: &str) -> Held {
    loop {
        match subject.acquire(session, soon()).await {
            Ok(held) => return held,
            Err(error) => assert!(error.is_retryable(), "{what}: {error:?}"),
        }
    }
}

async fn visit(subject: Subject, session: &Session, room: &Room, what: &str) {
    let held = room.enter(subject, acquired(subject, session, what).await);
    sleep(Duration::from_millis(3)).await;
    // Lost or not: a rival's session is sound, the victim's may have ended.
    room.leave(held).release().await.ok();
}

async fn struck(subject: Subject, n: usize, then: Then) -> Option<String> {
    let trial = Trial::new(subject).await;
    let what = format!("{subject}, {then:?} at frame {n}");
    let (room, over) = (Arc::new(Room::default()), Arc::new(AtomicBool::new(false)));
    let mut rivals = JoinSet::new();
    for _ in 0..subject.rivals() {
        let (room, over, other) = (Arc::clone(&room), Arc::clone(&over), trial.other.clone());
        let what = what.clone();
        rivals.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                visit(subject.rival(), &other, &room, &what).await;
            }
        });
    }
    let strike = trial.at_frame(n, then);
    // Until it struck, or so often that it will not: the release is struck, too.
    for _ in 0..2 {
        visit(subject, &trial.victim, &room, &what).await;
    }
    over.store(true, Ordering::Relaxed);
    while let Some(rival) = rivals.join_next().await {
        rival.unwrap();
    }
    let frame = strike.so_far().first().map(named);
    drop(strike);
    trial.is_free(&what).await;
    trial.is_clean_within(SOON, &what).await;
    trial.end().await;
    // Rivals make more frames than there is time for; those of two visits have been struck by then.
    frame.filter(|_| n < 24)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_at_any_frame_lets_nobody_in_who_should_wait() {
    for how in [Cut::Fin, Cut::Reset] {
        at_every_frame(|subject, n| struck(subject, n, Then::Cut(how))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_from_any_frame_on_lets_nobody_in_who_should_wait() {
    for silence in [Silence::Both, Silence::Requests, Silence::Replies] {
        at_every_frame(|subject, n| struck(subject, n, Then::Mute(silence))).await;
    }
}
