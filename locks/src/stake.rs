//! A stake: one contender's node in a lock directory, from before its create is sent until it is gone.
//!
//! Promises that dropping it at any moment removes the node, in the background and across reconnects, also when
//! nobody knows yet whether the node exists. Never more than one node per stake.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};
use zookeeper_client as zk;

use crate::claim::Claim;
use crate::error::{Lost, ReleaseError};
use crate::node::{Revocation, revocation};
use crate::observer::{Held, Observer};
use crate::removal::{Removal, Removed};
use crate::session::epoch::{Counted, Epoch, Failure};

/// What a stake is for at the moment.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting,
    /// Held under this count of lapses of the lease, since then.
    Holding {
        lapses: u64,
        since: Instant,
    },
    Leaving,
}

/// The part that the task watching the node shares.
pub(crate) struct Shared {
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) claim: Claim,
    observer: Arc<dyn Observer>,
    node: OnceLock<Node>,
    phase: Mutex<Phase>,
    story: Mutex<Story>,
    loss: watch::Sender<Option<Lost>>,
    revoked: watch::Sender<Option<Revocation>>,
}

/// Which span hears what happens to the contender: its own while it waits, its caller's while it holds, none after.
struct Story {
    now: Span,
    caller: Span,
}

/// The node, once it is known to exist.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) czxid: i64,
}

pub(crate) struct Stake {
    shared: Arc<Shared>,
    left: bool,
    _activity: Counted,
}

impl Stake {
    /// `caller`: the span that asked for the lock. The current one hears of the wait.
    pub(crate) fn new(epoch: &Arc<Epoch>, claim: Claim, observer: &Arc<dyn Observer>, caller: Span) -> Self {
        let shared = Shared {
            epoch: Arc::clone(epoch),
            claim,
            observer: Arc::clone(observer),
            node: OnceLock::new(),
            phase: Mutex::new(Phase::Waiting),
            story: Mutex::new(Story { now: Span::current(), caller }),
            loss: watch::Sender::new(None),
            revoked: watch::Sender::new(None),
        };
        Self { shared: Arc::new(shared), left: false, _activity: epoch.activity() }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The node exists: watches it from now on.
    pub(crate) fn found(&self, name: String, czxid: i64) -> &Node {
        let shared = &self.shared;
        if shared.node.set(Node { name, czxid }).is_ok() {
            shared.epoch.runtime.spawn(Arc::clone(shared).watch());
        }
        shared.node()
    }

    /// Turns the waiter into a holder, if the lease covers it at this moment.
    pub(crate) fn hold(&self) -> bool {
        let Some(lapses) = self.shared.epoch.lease.grant() else { return false };
        self.shared.set_phase(Phase::Holding { lapses, since: Instant::now() });
        let holds = self.shared.epoch.lease.covers(lapses) && self.shared.loss().is_none();
        if holds {
            self.shared.story(|story| story.now = story.caller.clone());
        }
        holds
    }

    /// From now on the end of the node is its owner's own doing, and no loss.
    pub(crate) fn leaving(&self) {
        self.shared.set_phase(Phase::Leaving);
    }

    /// Goes without a removal: the node was replaced by another's, in one transaction.
    pub(crate) fn exchanged(mut self, _by: &Self) {
        self.left = true;
    }

    /// Leaves: the node is removed in the background. The receiver tells how it went.
    pub(crate) fn leave(mut self) -> oneshot::Receiver<Result<(), ReleaseError>> {
        self.start_removal()
    }

    fn start_removal(&mut self) -> oneshot::Receiver<Result<(), ReleaseError>> {
        self.left = true;
        let shared = Arc::clone(&self.shared);
        // A loss that nobody looked for yet is a loss all the same.
        let lost = shared.check().err();
        let held = match shared.set_phase(Phase::Leaving) {
            Phase::Holding { since, .. } => Some(since.elapsed()),
            Phase::Waiting | Phase::Leaving => None,
        };
        // A span that is kept here would not end before the removal has.
        shared.story(|story| (story.now, story.caller) = (Span::none(), Span::none()));
        let removal = Removal {
            epoch: Arc::clone(&shared.epoch),
            claim: shared.claim.clone(),
            // After a loss the name alone is no proof: another's node may bear it by now.
            name: shared.node.get().filter(|_| lost.is_none()).map(|node| node.name.clone()),
        };
        let span = match held {
            Some(_) => tracing::info_span!(
                "lock.release",
                lock.path = %shared.claim.path,
                lock.recipe = %shared.claim.role,
                lock.token = shared.node.get().map(|node| node.czxid),
                lock.outcome = tracing::field::Empty,
            ),
            None => tracing::Span::none(),
        };
        let (sender, receiver) = oneshot::channel();
        let runtime = shared.epoch.runtime.clone();
        let leaving = async move {
            let result = shared.outcome(lost, removal.run().await);
            tracing::Span::current().record(
                "lock.outcome",
                match &result {
                    Ok(()) => "released",
                    Err(ReleaseError::Lost { reason, .. }) => reason.as_str(),
                    Err(_) => "refused",
                },
            );
            if let Some(held) = held {
                shared.observer.released(shared.holding_for(held), result.as_ref().copied());
            }
            // Nobody need be waiting for it.
            let _unheard = sender.send(result).is_err();
        };
        runtime.spawn(leaving.instrument(span));
        receiver
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        if !self.left {
            let _unawaited = self.start_removal();
        }
    }
}

impl Shared {
    /// The node.
    ///
    /// # Panics
    /// Before [`Stake::found`]: a bug, since only a found node gets this far.
    #[allow(clippy::expect_used, reason = "an invariant of the engine")]
    pub(crate) fn node(&self) -> &Node {
        self.node.get().expect("a stake that is asked for its node has one")
    }

    pub(crate) fn node_path(&self) -> String {
        self.claim.node_path(&self.node().name)
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_phase(&self, phase: Phase) -> Phase {
        std::mem::replace(&mut *self.phase.lock().unwrap_or_else(PoisonError::into_inner), phase)
    }

    fn story<T>(&self, with: impl FnOnce(&mut Story) -> T) -> T {
        with(&mut self.story.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The span that hears what happens now.
    fn span(&self) -> Span {
        self.story(|story| story.now.clone())
    }

    pub(crate) fn loss(&self) -> Option<Lost> {
        *self.loss.borrow()
    }

    /// For how long the lock has been held.
    pub(crate) fn held(&self) -> Duration {
        match self.phase() {
            Phase::Holding { since, .. } => since.elapsed(),
            Phase::Waiting | Phase::Leaving => Duration::ZERO,
        }
    }

    fn holding_for(&self, held: Duration) -> Held<'_> {
        Held { path: &self.claim.path, role: self.claim.role, held }
    }

    /// A look at the clock and at what is known of session and node; finds a loss before its watcher does.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if let Some(reason) = self.loss().or_else(|| self.epoch.ended()) {
            return Err(self.lose(reason));
        }
        match self.phase() {
            Phase::Holding { lapses, .. } if !self.epoch.lease.covers(lapses) => {
                Err(self.lose(Lost::LeaseRunOut))
            }
            _ => Ok(()),
        }
    }

    /// Resolves when the node, the session or (for a holder) the lease is lost. Cancel safe.
    pub(crate) async fn lost(&self) -> Lost {
        let mut loss = self.loss.subscribe();
        match loss.wait_for(Option::is_some).await.map(|loss| *loss) {
            Ok(Some(reason)) => reason,
            // The sender lives in `self`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Makes a loss final, once, and tells of it if a lock was held.
    fn lose(&self, reason: Lost) -> Lost {
        let mut first = false;
        self.loss.send_if_modified(|loss| {
            first = loss.is_none();
            loss.get_or_insert(reason);
            first
        });
        let reason = self.loss().unwrap_or(reason);
        if first && matches!(self.phase(), Phase::Holding { .. }) {
            let span = self.span();
            tracing::warn!(
                parent: &span,
                lock.path = %self.claim.path,
                lock.node = %self.node_path(),
                lock.token = self.node().czxid,
                session = %self.epoch.info,
                reason = reason.as_str(),
                "lock lost",
            );
            span.in_scope(|| self.observer.lost(self.holding_for(self.held()), reason));
        }
        reason
    }

    fn tell_connection(&self, connected: bool) {
        if matches!(self.phase(), Phase::Leaving) {
            return;
        }
        let (span, session) = (self.span(), &self.epoch.info);
        if connected {
            tracing::debug!(parent: &span, %session, "resumed");
        } else {
            tracing::debug!(parent: &span, %session, lease_ms = session.lease.as_millis(), "suspended");
        }
    }

    /// Watches the node, the session and the lease until one is lost or the stake leaves.
    async fn watch(self: Arc<Self>) {
        let mut lapses = self.epoch.lease.watch_lapses();
        let mut connection = self.epoch.watch_connection();
        let mut deleted = std::pin::pin!(self.deleted());
        loop {
            let reason = tokio::select! {
                biased;
                reason = self.epoch.end() => Some(reason),
                reason = &mut deleted => Some(reason),
                _ = lapses.changed() => None,
                _ = connection.changed() => {
                    self.tell_connection(*connection.borrow());
                    continue;
                }
            };
            if matches!(self.phase(), Phase::Leaving) {
                return;
            }
            match reason {
                Some(reason) => {
                    self.lose(reason);
                    return;
                }
                None => {
                    if self.check().is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Resolves when somebody asks for the lock to be let go. Cancel safe.
    pub(crate) async fn revoked(&self) -> Revocation {
        let mut revoked = self.revoked.subscribe();
        match revoked.wait_for(Option::is_some).await.map(|asked| asked.clone()) {
            Ok(Some(asked)) => asked,
            // The sender lives in `self`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when the server says that the node is gone. Hears on the way what is written to it.
    async fn deleted(&self) -> Lost {
        let path = self.node_path();
        loop {
            // A read, since it sets no watch on a node that is not there.
            match self
                .epoch
                .ask(|client| {
                    let path = &path;
                    async move { client.get_and_watch_data(path).await }
                })
                .await
            {
                Ok((data, stat, watcher)) if stat.czxid == self.node().czxid => {
                    if let Some(asked) = revocation(&data) {
                        self.revoked.send_replace(Some(asked));
                    }
                    let event = watcher.changed().await;
                    if event.event_type == zk::EventType::Session {
                        return self.epoch.end().await;
                    }
                }
                // The same name, made anew by another.
                Ok(_) | Err(Failure::Refused(_)) => return Lost::NodeDeleted,
                Err(Failure::SessionOver(reason)) => return reason,
            }
        }
    }

    fn outcome(&self, lost: Option<Lost>, removed: Removed) -> Result<(), ReleaseError> {
        let reason = match (lost, removed) {
            (None, Removed::ByUs) => return Ok(()),
            (None, Removed::WasNotThere) => Lost::NodeDeleted,
            (Some(reason), _) | (None, Removed::WithSession(reason)) => reason,
            (None, Removed::Refused) => return Err(ReleaseError::Refused { path: self.claim.path.clone() }),
        };
        Err(ReleaseError::Lost { path: self.claim.path.clone(), reason })
    }
}
