//! The whole ensemble is away: at the start, while waiting, while holding, while closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stack::{RunDir, ZooKeeper, ZooKeeperConfig};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use zk_locks::{Acquire, AcquireError, Lost, Session, SessionState};

use crate::support::{FAIR, SESSION, SOON, config, connected, lock, soon};

/// An ensemble that a test may stop, and its folder, which goes with it.
async fn own_ensemble() -> (ZooKeeper, RunDir) {
    let dir = RunDir::disposable("outage").unwrap();
    // One server is enough to be away, and quick to come back.
    let config = ZooKeeperConfig { servers: 1, ..ZooKeeperConfig::default() };
    (ZooKeeper::start(&dir, config).await.unwrap(), dir)
}

/// Cases 11 and 24: waiters of every age get on with it soon after the ensemble is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_longer_than_the_session_all_is_usable_again() {
    let (zookeeper, _dir) = own_ensemble().await;
    let session = connected(config(&zookeeper.connect_string("/outage"), "one")).await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..100 {
        let lock = lock(&session, FAIR);
        waiters.spawn(async move { lock.acquire(Acquire::within(SESSION * 2)).await });
    }
    zookeeper.stop_all().await;
    let stopped = Instant::now();
    assert_eq!(tokio::time::timeout(SESSION, guard.lost()).await.unwrap(), Lost::LeaseRunOut);
    while let Some(ended) = waiters.join_next().await {
        let error = ended.unwrap().unwrap_err();
        let told = matches!(error, AcquireError::SessionLost { .. } | AcquireError::Timeout { .. });
        assert!(told, "{error:?}");
        assert!(
            stopped.elapsed() < SESSION * 2 + Duration::from_millis(500),
            "an acquire outlived its deadline"
        );
    }
    let late = lock(&session, FAIR).acquire(Acquire::within(Duration::from_millis(500))).await.unwrap_err();
    assert!(matches!(late, AcquireError::Timeout { position: None, .. }), "{late:?}");
    tokio::time::sleep_until(stopped + SESSION * 3).await;
    zookeeper.start_all().await.unwrap();
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    guard.release().await.unwrap();
}

/// Case 25: it starts without an ensemble, waits without haste, and heals by itself.
#[tokio::test]
async fn it_starts_before_the_ensemble_does() {
    let (zookeeper, _dir) = own_ensemble().await;
    zookeeper.stop_all().await;
    let session = Session::start(config(&zookeeper.connect_string("/early"), "one"));
    let error = lock(&session, FAIR).acquire(Acquire::within(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(error, AcquireError::Timeout { position: None, .. }), "{error:?}");
    assert_eq!(session.state(), SessionState::Connecting);
    zookeeper.start_all().await.unwrap();
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
}

/// Case 26: closing during an outage ends within its grace.
#[tokio::test]
async fn closing_ends_within_its_grace_while_the_ensemble_is_away() {
    let (zookeeper, _dir) = own_ensemble().await;
    let session = connected(config(&zookeeper.connect_string("/close"), "one")).await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    zookeeper.stop_all().await;
    drop(guard);
    let began = Instant::now();
    let grace = Duration::from_millis(700);
    session.close(grace).await.unwrap();
    assert!(began.elapsed() < grace + Duration::from_millis(500), "{:?}", began.elapsed());
    assert_eq!(session.state(), SessionState::Closed);
}

/// A release that gets no answer says so, in time, and is made up for.
#[tokio::test]
async fn a_release_without_an_answer_is_bounded() {
    let (zookeeper, _dir) = own_ensemble().await;
    let session = connected(config(&zookeeper.connect_string("/release"), "one")).await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    zookeeper.stop_all().await;
    let error = tokio::time::timeout(SOON, guard.release()).await.unwrap().unwrap_err();
    assert!(matches!(error, zk_locks::ReleaseError::Pending { .. }), "{error:?}");
    zookeeper.start_all().await.unwrap();
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
}

/// Counts what a log at its default level would hold.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() <= tracing::Level::INFO {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Case 24, the other half: no flood of log lines, the client library's included.
#[tokio::test]
async fn an_outage_is_told_in_few_lines() {
    let (zookeeper, _dir) = own_ensemble().await;
    let lines = Lines::default();
    // For this thread, on which everything of this test runs.
    let _logged = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let session = connected(config(&zookeeper.connect_string("/log"), "one")).await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    zookeeper.stop_all().await;
    let waiting = lock(&session, FAIR).acquire(Acquire::within(SESSION * 3)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    zookeeper.start_all().await.unwrap();
    lock(&session, FAIR).acquire(soon()).await.unwrap().release().await.unwrap();
    drop(guard);
    let told = lines.0.load(Ordering::Relaxed);
    assert!((2..40).contains(&told), "{told} lines for one outage");
}
