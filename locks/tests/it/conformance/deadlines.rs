//! An acquire ends by its deadline, whatever the network does and at whatever frame it begins to.

use std::time::Duration;

use stack::{Silence, Then};
use tokio::time::{Instant, sleep};
use zk_locks::{Acquire, AcquireError};

use super::subject::Subject;
use super::trial::{AT_REST, Trial, at_every_frame, make_way, named};

const DEADLINE: Duration = Duration::from_secs(2);
/// The promise; without it a caller cannot keep its own.
const ENDED: Duration = Duration::from_millis(2500);

async fn stuck(subject: Subject, n: usize, blocked: bool, then: Then) -> Option<String> {
    let trial = Trial::new(subject).await;
    let mut rivals = if blocked { trial.block().await } else { Vec::new() };
    let stuck = trial.at_frame(n, then);
    let begun = Instant::now();
    let mut acquiring = Box::pin(subject.acquire(&trial.victim, Acquire::within(DEADLINE)));
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut acquiring => break ended,
            () = sleep(AT_REST), if !rivals.is_empty() => make_way(std::mem::take(&mut rivals)).await,
        }
    };
    let took = begun.elapsed();
    drop(acquiring);
    let frame = stuck.so_far().first().map(named);
    let what = format!("{subject}, {then:?} at frame {n} ({frame:?}), blocked {blocked}");
    assert!(took < ENDED, "{what}: {took:?}");
    match ended {
        // A muted connection is given up by its client, and the next one may be in time.
        Ok(held) => drop(held),
        Err(AcquireError::Timeout { .. } | AcquireError::SessionLost { .. }) if frame.is_some() => {}
        Err(error) => panic!("{what}: {error:?}"),
    }
    drop(stuck);
    trial.is_free(&what).await;
    trial.end().await;
    frame
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_holds_when_the_network_hangs_at_any_frame() {
    for (blocked, then) in [
        (false, Then::Hold),
        (true, Then::Hold),
        (false, Then::Mute(Silence::Both)),
        (true, Then::Mute(Silence::Replies)),
    ] {
        at_every_frame(|subject, n| stuck(subject, n, blocked, then)).await;
    }
}
