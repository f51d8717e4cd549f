//! One process: signals, ends, the log, the watchdog.

use std::{path::Path, time::Duration};

use stack::{Child, Command, Exit, RunDir};

use crate::until;

const SOON: Duration = Duration::from_secs(20);

fn shell(dir: &RunDir, script: &str) -> Child {
    Command::new("shell", "/bin/sh").args(["-c", script]).spawn(dir).expect("a shell starts")
}

async fn says(child: &Child, text: &str) {
    until(text, || async { child.log_tail(1) == text }).await;
}

#[tokio::test]
async fn pauses_and_resumes() {
    let dir = RunDir::disposable("test").expect("a folder");
    let child = shell(&dir, "trap 'echo resumed; exit 3' CONT; echo ready; while :; do sleep 0.05; done");
    says(&child, "ready").await;
    child.pause();
    assert!(child.is_stopped() && child.is_running());
    child.resume();
    assert_eq!(child.wait_exit(SOON).await, Some(Exit::Code(3)));
    assert_eq!(child.log_tail(1), "resumed");
    assert!(!child.is_stopped() && !child.is_running());
}

#[tokio::test]
async fn an_unexpected_death_is_reported_with_the_end_of_the_log() {
    let dir = RunDir::disposable("test").expect("a folder");
    let child = shell(&dir, "echo first; echo last words >&2; exit 7");
    let death = dir.watchdog().first_death().await;
    assert_eq!((death.name.as_str(), death.pid, death.exit), ("shell", child.pid(), Exit::Code(7)));
    assert_eq!(death.log_tail, "first\nlast words");
    assert!(death.to_string().contains("exit code 7"), "{death}");
}

#[tokio::test]
async fn an_end_that_was_asked_for_is_no_death() {
    let dir = RunDir::disposable("test").expect("a folder");
    let killed = shell(&dir, "exec sleep 600");
    killed.kill();
    assert_eq!(killed.wait_exit(SOON).await, Some(Exit::Signal(9)));
    let done = Command::new("done", "/bin/true").may_end().spawn(&dir).expect("it starts");
    assert_eq!(done.wait_exit(SOON).await, Some(Exit::Code(0)));
    let stubborn = shell(&dir, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    says(&stubborn, "ready").await;
    stubborn.pause();
    assert_eq!(stubborn.stop(Duration::from_millis(300)).await, Exit::Signal(9));
    assert!(dir.watchdog().deaths().is_empty(), "{:?}", dir.watchdog().deaths());
}

#[tokio::test]
async fn the_last_handle_takes_the_process_with_it() {
    let dir = RunDir::disposable("test").expect("a folder");
    let child = shell(&dir, "exec sleep 600");
    let (pid, clone) = (child.pid(), child.clone());
    drop(child);
    assert!(clone.is_running());
    drop(clone);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[tokio::test]
async fn children_live_on_when_the_thread_that_asked_for_them_ends() {
    let dir = RunDir::disposable("test").expect("a folder");
    let child = std::thread::scope(|scope| {
        scope.spawn(|| shell(&dir, "echo ready; exec sleep 600")).join().expect("no panic")
    });
    says(&child, "ready").await;
    assert_eq!(child.wait_exit(Duration::from_millis(200)).await, None);
}

#[tokio::test]
async fn a_disposable_folder_goes_and_another_stays() {
    let gone = RunDir::disposable("test").expect("a folder");
    let kept = RunDir::create("test").expect("a folder");
    let (gone_path, kept_path) = (gone.path().to_owned(), kept.path().to_owned());
    drop((gone, kept));
    assert!(!gone_path.exists() && kept_path.exists());
    let opened = RunDir::open(&kept_path).expect("it is there");
    opened.remove().expect("it can be removed");
    assert!(!kept_path.exists());
    let refused = RunDir::open(&kept_path).expect_err("it is gone").to_string();
    assert!(refused.contains(&kept_path.display().to_string()), "{refused}");
}
