//! Keeps a session going: connects, watches, and builds the next one after the end of the last.
//!
//! Promises that an end is told to everyone who relied on the session, that nothing of an old session is
//! carried into a new one, and that an ensemble that is away costs little: backoff with jitter, and a bounded
//! number of log lines.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use zookeeper_client as zk;

use super::epoch::Epoch;
use super::member::SessionNode;
use super::{SessionState, keeper};
use crate::config::SessionConfig;
use crate::error::Lost;

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_LAST: Duration = Duration::from_secs(2);
/// What clean-up is given when the last handle is dropped without a word.
const GRACE_ON_DROP: Duration = Duration::from_secs(1);
/// At most one line a while about an ensemble that stays away.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

/// What the supervisor tells the handles of a session.
pub(super) struct Published {
    pub(super) state: watch::Sender<SessionState>,
    pub(super) epoch: watch::Sender<Option<Arc<Epoch>>>,
}

pub(super) struct Supervisor {
    pub(super) config: SessionConfig,
    pub(super) published: Arc<Published>,
    /// Turns true when the owner closes the session or drops the last handle; carries the grace.
    pub(super) closing: watch::Receiver<Option<Duration>>,
    pub(super) closed: watch::Sender<bool>,
}

impl Supervisor {
    /// Runs until the session is closed by its owner.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::default();
        while self.closing.borrow().is_none() {
            self.publish(&SessionState::Connecting);
            let Some(client) = self.connect(&mut backoff).await else { break };
            self.serve(client).await;
        }
        self.published.epoch.send_replace(None);
        self.publish(&SessionState::Closed);
        self.closed.send_replace(true);
    }

    fn publish(&self, state: &SessionState) {
        let changed = self.published.state.send_if_modified(|old| {
            let changed = old != state;
            old.clone_from(state);
            changed
        });
        if changed {
            self.config.observer.session(state);
        }
    }

    /// Connects, however long it takes; `None` when the owner closes the session meanwhile.
    async fn connect(&mut self, backoff: &mut Backoff) -> Option<zk::Client> {
        loop {
            let connector =
                zk::Client::connector().with_session_timeout(self.config.session_timeout).with_fail_eagerly();
            let hosts = self.config.connect.hosts.clone();
            let attempt = timeout(self.config.session_timeout, connector.connect(&hosts));
            let answer = tokio::select! {
                biased;
                () = closing(&mut self.closing) => return None,
                answer = attempt => answer.unwrap_or(Err(zk::Error::Timeout)),
            };
            match answer {
                Ok(client) => {
                    backoff.reset();
                    return Some(client);
                }
                Err(error) => backoff.complain(&hosts, &error),
            }
            tokio::select! {
                biased;
                () = closing(&mut self.closing) => return None,
                () = tokio::time::sleep(backoff.next()) => {}
            }
        }
    }

    /// Serves one ZooKeeper session to its end.
    async fn serve(&mut self, client: zk::Client) {
        let mut states = client.state_watcher();
        let epoch = Epoch::new(client);
        let config = &self.config;
        let node = Arc::new(SessionNode::new(&config.connect, config.instance.as_deref(), &config.metadata));
        let tasks = [
            tokio::spawn(keeper::renew(Arc::clone(&epoch), Arc::clone(&node))),
            tokio::spawn(keeper::watch(Arc::clone(&epoch))),
        ];
        let mut ready = false;
        let grace = loop {
            tokio::select! {
                biased;
                () = closing(&mut self.closing) => break Some(self.closing.borrow().unwrap_or(GRACE_ON_DROP)),
                made = node.create(&epoch), if !ready => match made {
                    Ok(()) => {
                        ready = true;
                        self.published.epoch.send_replace(Some(Arc::clone(&epoch)));
                        self.publish(&SessionState::Connected(epoch.info.clone()));
                        tracing::info!(session = %epoch.info, "ZooKeeper session established");
                    }
                    Err(failure) => {
                        tracing::error!(?failure, node = %node.path, "the session's own node cannot be made");
                        break None;
                    }
                },
                state = states.changed() => match state {
                    zk::SessionState::Disconnected => {
                        epoch.set_connected(false);
                        if ready {
                            self.publish(&SessionState::Suspended(epoch.info.clone()));
                        }
                    }
                    zk::SessionState::SyncConnected => {
                        if !self.same_session(&epoch, &node, &mut states, ready).await {
                            break None;
                        }
                        epoch.set_connected(true);
                        if ready {
                            self.publish(&SessionState::Connected(epoch.info.clone()));
                        }
                    }
                    _ => break None,
                },
            }
        };
        self.end(&epoch, grace, &mut states).await;
        for task in tasks {
            task.abort();
        }
    }

    /// Whether a reconnect found the session it left.
    async fn same_session(
        &self,
        epoch: &Epoch,
        node: &SessionNode,
        states: &mut zk::StateWatcher,
        ready: bool,
    ) -> bool {
        if !ready {
            return true;
        }
        let Ok(client) = epoch.client() else { return false };
        match node.is_mine(&client).await {
            Ok(true) => true,
            // An outsider may have deleted the node; then the proof of the lease finds out and makes it again.
            Ok(false) => match client.check_stat(&node.path).await {
                Ok(None) => true,
                Ok(Some(_)) => {
                    tracing::error!(session = %epoch.info, "a server answered the reconnect with another session");
                    false
                }
                Err(_) => !states.peek_state().is_terminated(),
            },
            // Disconnected again: the next state says more.
            Err(_) => !states.peek_state().is_terminated(),
        }
    }

    /// Ends an epoch: by its owner within `grace`, or because it is over already.
    async fn end(&self, epoch: &Arc<Epoch>, grace: Option<Duration>, states: &mut zk::StateWatcher) {
        let Some(grace) = grace else {
            self.published.epoch.send_replace(None);
            epoch.finish(Lost::SessionExpired);
            self.publish(&SessionState::Lost(epoch.info.clone()));
            tracing::warn!(session = %epoch.info, "ZooKeeper session lost; building a new one");
            epoch.disconnect();
            return;
        };
        self.published.epoch.send_replace(None);
        let deadline = Instant::now() + grace;
        if tokio::time::timeout_at(deadline, epoch.wait_removed()).await.is_err() {
            tracing::warn!(session = %epoch.info, "lock nodes are left to go with the session");
        }
        epoch.finish(Lost::Closed);
        epoch.disconnect();
        let ended = async { while !states.changed().await.is_terminated() {} };
        if tokio::time::timeout_at(deadline, ended).await.is_err() {
            tracing::warn!(session = %epoch.info, "the server did not confirm the end of the session");
        }
    }
}

/// Resolves when the owner closes the session. Cancel safe.
async fn closing(closing: &mut watch::Receiver<Option<Duration>>) {
    // A closed channel means that the last handle is gone without a word: the same thing.
    let _gone = closing.wait_for(Option::is_some).await.is_err();
}

#[derive(Default)]
struct Backoff {
    tries: u32,
    complained: Option<Instant>,
}

impl Backoff {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn next(&mut self) -> Duration {
        let full = BACKOFF_LAST.min(BACKOFF_FIRST * 2u32.saturating_pow(self.tries.min(16)));
        self.tries = self.tries.saturating_add(1);
        full.mul_f64(rand::rng().random_range(0.5..1.0))
    }

    fn complain(&mut self, hosts: &str, error: &zk::Error) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::warn!(hosts, %error, "no ZooKeeper session can be established; trying on");
        }
    }
}
