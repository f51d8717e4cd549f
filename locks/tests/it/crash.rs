//! The process dies without a word, right after a release or while it holds.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;
use zk_locks::{Recipe, Session};

use crate::support::{FAIR, Place, SESSION, config, lock, soon};

const ROLE: &str = "ZK_LOCKS_TEST_CRASHER";

/// Not a test of its own: the process that `crash_after` starts and kills.
#[tokio::test]
async fn crasher() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (connect, path) = role.split_once(' ').unwrap();
    let (path, hold) = path.split_once(' ').unwrap();
    let session = Session::start(config(connect, "crasher"));
    let guard = session.mutex(Recipe::Fair, path).unwrap().acquire(soon()).await.unwrap();
    let kept = if hold == "hold" {
        Some(guard)
    } else {
        guard.release().await.unwrap();
        None
    };
    println!("\ncrash now");
    std::future::pending::<()>().await;
    drop(kept);
}

/// Runs a process that acquires, perhaps releases, and is then killed.
fn crash_after(connect: &str, path: &str, hold: &str) {
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::crasher", "--exact", "--nocapture"])
        .env(ROLE, format!("{connect} {path} {hold}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let ready = BufReader::new(stdout).lines().map_while(Result::ok).any(|line| line == "crash now");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready, "the crasher did not get as far");
}

/// Case 17: released, then crashed, and never free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_released_before_a_crash_is_free() {
    let place = Place::new().await;
    let session = place.session("next").await;
    let crashes = (0..8).map(|lane| {
        let (connect, session) = (place.connect.clone(), session.clone());
        tokio::spawn(async move {
            let path = format!("/locks/lane-{lane}");
            for _ in 0..25 {
                let (connect, crash_path) = (connect.clone(), path.clone());
                tokio::task::spawn_blocking(move || crash_after(&connect, &crash_path, "release"))
                    .await
                    .unwrap();
                let crashed = Instant::now();
                let guard = session.mutex(Recipe::Fair, &path).unwrap().acquire(soon()).await.unwrap();
                assert!(crashed.elapsed() < SESSION + Duration::from_secs(1), "{:?}", crashed.elapsed());
                guard.release().await.unwrap();
            }
        })
    });
    for lane in futures::future::join_all(crashes).await {
        lane.unwrap();
    }
}

#[tokio::test]
async fn what_was_held_at_a_crash_is_free_after_the_session_timeout() {
    let place = Place::new().await;
    let session = place.session("next").await;
    let connect = place.connect.clone();
    tokio::task::spawn_blocking(move || crash_after(&connect, crate::support::LOCK, "hold")).await.unwrap();
    let crashed = Instant::now();
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    // The server looks for dead sessions once a tick, and a tick of the test ensemble is half a second.
    assert!(crashed.elapsed() < SESSION + Duration::from_secs(2), "{:?}", crashed.elapsed());
    guard.release().await.unwrap();
}
