//! The future is dropped, at every await there is: while the frame that it waits for is on its way.

use std::time::Duration;

use rand::RngExt as _;
use stack::{Cut, Then};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::subject::Subject;
use super::trial::{AT_REST, Trial, at_every_frame, make_way, named};
use crate::support::{SOON, soon};

/// What becomes of the frame on its way, once nobody waits for it any more.
#[derive(Clone, Copy, Debug)]
enum Afterwards {
    Arrives,
    IsLost,
}

/// Drops an acquire at its `n`-th frame, free or blocked at first; `None` if it had no such frame.
async fn dropped(subject: Subject, n: usize, blocked: bool, afterwards: Afterwards) -> Option<String> {
    let trial = Trial::new(subject).await;
    let mut rivals = if blocked { trial.block().await } else { Vec::new() };
    let held = trial.at_frame(n, Then::Hold);
    let mut acquiring = Box::pin(subject.acquire(&trial.victim, soon()));
    let frame = loop {
        tokio::select! {
            biased;
            frame = held.happened() => break Some(named(&frame)),
            acquired = &mut acquiring => {
                // The frames of the release are not meant.
                held.release();
                acquired.unwrap().release().await.unwrap();
                break None;
            }
            () = sleep(AT_REST), if !rivals.is_empty() => make_way(std::mem::take(&mut rivals)).await,
        }
    };
    drop(acquiring);
    if let (Some(_), Afterwards::IsLost) = (&frame, afterwards) {
        trial.proxy.drop_connections(Cut::Reset).unwrap();
    }
    held.release();
    make_way(rivals).await;
    let what =
        format!("{subject}, dropped at frame {n} ({frame:?}), which {afterwards:?}, blocked {blocked}");
    trial.is_free(&what).await;
    trial.is_clean_within(Duration::from_secs(2), &what).await;
    trial.end().await;
    frame
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drop_at_any_frame_leaves_nothing() {
    for (blocked, afterwards) in [
        (false, Afterwards::Arrives),
        (false, Afterwards::IsLost),
        (true, Afterwards::Arrives),
        (true, Afterwards::IsLost),
    ] {
        let frames = at_every_frame(|subject, n| dropped(subject, n, blocked, afterwards)).await;
        eprintln!("dropped at {frames} frames, blocked {blocked}, and then each {afterwards:?}");
    }
}

/// Cases 14 and 20: cancelled, and yet a node or a lock. 1,920 of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drops_at_random_times_leave_nothing() {
    for subject in Subject::ALL {
        let trial = Trial::new(subject).await;
        let mut contenders = JoinSet::new();
        for turn in 0..20 {
            let session = [&trial.victim, &trial.other][turn % 2].clone();
            contenders.spawn(async move {
                for _ in 0..12 {
                    let patience = Duration::from_micros(rand::rng().random_range(0..12_000));
                    // Dropped by the timer, not by the deadline.
                    match timeout(patience, subject.acquire(&session, soon())).await {
                        Ok(held) => drop(held.unwrap()),
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
            });
        }
        while let Some(contender) = contenders.join_next().await {
            contender.unwrap();
        }
        trial.is_clean_within(Duration::from_secs(2), &format!("{subject}")).await;
        timeout(SOON, trial.is_free("after the drops")).await.unwrap();
        trial.end().await;
    }
}
