//! The engine: gets a contender from its call to its guard, the same way for every recipe.
//!
//! Promises what [`Mutex::acquire`](crate::Mutex::acquire) documents. It owns no clean-up of its own: whatever
//! it drops, at whatever await, the [`Stake`] removes.

use std::sync::Arc;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;
use zookeeper_client as zk;

use crate::clock::BootInstant;
use crate::directory;
use crate::error::{AcquireError, Lost, OperationError, Outcome, outcome};
use crate::guard::{Guard, Wait};
use crate::locate::locate;
use crate::mutex::{Acquire, Mutex};
use crate::node::NodeData;
use crate::observer::Queued;
use crate::recipe::{Recipe, SIMPLE_NODE};
use crate::session::epoch::{Epoch, Failure};
use crate::stake::Stake;
use crate::turn::{Turn, exclusive};

/// One call of `acquire`.
pub(crate) struct Contender<'m> {
    mutex: &'m Mutex,
    request: Acquire,
    guid: Uuid,
    directory: String,
    started: Instant,
    /// How many were ahead: at entry, and when last looked.
    pub(crate) entered_at: Option<usize>,
    pub(crate) position: Option<usize>,
    patient: bool,
}

/// What putting a node into the directory came to.
enum Entry {
    /// It stands; with the children that a listing sent right behind it found.
    Staked(Vec<String>),
    /// The one place of [`Recipe::Simple`] is taken.
    Taken,
}

impl<'m> Contender<'m> {
    pub(crate) fn new(mutex: &'m Mutex, request: Acquire, patient: bool) -> Self {
        Self {
            directory: mutex.session().config().connect.absolute(mutex.path()),
            mutex,
            request,
            guid: Uuid::new_v4(),
            started: Instant::now(),
            entered_at: None,
            position: None,
            patient,
        }
    }

    /// Runs until the lock is held or cannot be. The caller's deadline ends it by dropping it.
    pub(crate) async fn run(&mut self) -> Result<Guard, AcquireError> {
        let Some(epoch) = self.mutex.session().epoch().await else {
            return Err(AcquireError::Closed { path: self.path() });
        };
        let observer = &self.mutex.session().config().observer;
        let stake =
            Stake::new(&epoch, self.mutex.recipe(), self.mutex.path(), &self.directory, self.guid, observer);
        let turn = tokio::select! {
            biased;
            reason = stake.shared().lost() => Err(Failure::SessionOver(reason)),
            turn = self.wait_for_turn(&stake) => turn,
        };
        match turn {
            Ok(true) => Ok(Guard::new(self.mutex.session().clone(), stake, self.wait())),
            Ok(false) => {
                // The node of a try that failed is gone when the caller hears of it.
                let _settled = stake.leave().await;
                Err(AcquireError::Busy { path: self.path() })
            }
            Err(failure) => Err(self.error(failure)),
        }
    }

    fn path(&self) -> String {
        self.mutex.path().to_owned()
    }

    fn wait(&self) -> Wait {
        Wait {
            position: self.entered_at.unwrap_or(0),
            waited: self.started.elapsed(),
            acquired_at: OffsetDateTime::now_utc(),
        }
    }

    pub(crate) fn timed_out(&self) -> AcquireError {
        AcquireError::Timeout { path: self.path(), waited: self.started.elapsed(), position: self.position }
    }

    fn error(&self, failure: Failure) -> AcquireError {
        let path = self.path();
        match failure {
            Failure::SessionOver(Lost::NodeDeleted) => AcquireError::NodeDeleted { path },
            Failure::SessionOver(Lost::Closed) => AcquireError::Closed { path },
            Failure::SessionOver(reason) => AcquireError::SessionLost { path, reason },
            Failure::Refused(source) => AcquireError::Refused {
                source: OperationError { operation: "acquire", path: path.clone(), source },
                path,
            },
        }
    }

    /// `true` when the lock is held, `false` when an impatient contender is not the first.
    async fn wait_for_turn(&mut self, stake: &Stake) -> Result<bool, Failure> {
        let epoch = &stake.shared().epoch;
        let mut children = loop {
            match self.enter(stake).await? {
                Entry::Staked(children) => break children,
                Entry::Taken if !self.patient => return Ok(false),
                Entry::Taken => self.wait_behind(epoch, SIMPLE_NODE, 1).await?,
            }
        };
        loop {
            let ahead = match self.turn(stake, &children) {
                Turn::Mine => break,
                Turn::Gone => return Err(Failure::SessionOver(Lost::NodeDeleted)),
                Turn::Behind { .. } if !self.patient => return Ok(false),
                Turn::Behind { node, position } => {
                    self.wait_behind(epoch, &node, position).await?;
                    position
                }
            };
            // Whoever was behind the head alone is the head now: nobody can have come in before it.
            if ahead == 1 {
                break;
            }
            children = list(epoch, &self.directory).await?;
        }
        self.entered_at.get_or_insert(0);
        self.position = Some(0);
        hold(stake).await;
        Ok(true)
    }

    fn turn(&self, stake: &Stake, children: &[String]) -> Turn {
        match self.mutex.recipe() {
            // Whoever made the one node holds.
            Recipe::Simple => Turn::Mine,
            Recipe::Fair => exclusive(children, &stake.shared().node().name),
        }
    }

    /// Makes the node. A reply that was lost is resolved by looking for the node before another is made.
    async fn enter(&self, stake: &Stake) -> Result<Entry, Failure> {
        let epoch = &stake.shared().epoch;
        let recipe = self.mutex.recipe();
        let name = recipe.node_name(self.guid);
        let path = format!("{}/{name}", self.directory);
        let options = recipe.create_mode().with_acls(zk::Acls::anyone_all());
        let data = self.data().to_bytes();
        loop {
            epoch.connected().await.map_err(Failure::SessionOver)?;
            let client = epoch.client().map_err(Failure::Refused)?;
            let sent = BootInstant::now();
            // Both leave together: the listing is answered after the create.
            let create = client.create(&path, &data, &options);
            let listing = (recipe == Recipe::Fair).then(|| client.list_children(&self.directory));
            let created = create.await;
            epoch.prove(sent, &created);
            match created {
                Ok((stat, _)) if stat.ephemeral_owner != epoch.info.id => {
                    // Made under a session that nobody told us of: not ours to hold, and gone with it.
                    tracing::error!(session = %epoch.info, "a node was made by another session");
                    return Err(Failure::SessionOver(Lost::SessionExpired));
                }
                Ok((stat, sequence)) => {
                    let name = match recipe {
                        Recipe::Simple => name,
                        Recipe::Fair => format!("{name}{sequence}"),
                    };
                    stake.found(name, stat.czxid);
                    let children = match listing {
                        Some(listing) => listing.await,
                        None => Ok(Vec::new()),
                    };
                    return match children {
                        Ok(children) => Ok(Entry::Staked(children)),
                        Err(error) => {
                            epoch.settle(error).await?;
                            Ok(Entry::Staked(list(epoch, &self.directory).await?))
                        }
                    };
                }
                Err(zk::Error::NoNode) => directory::make(epoch, &self.directory).await?,
                Err(zk::Error::NodeExists) => return Ok(Entry::Taken),
                Err(error) => {
                    let unknown = outcome(&error) == Outcome::Unknown;
                    epoch.settle(error).await?;
                    if unknown && let Some(found) = locate(epoch, recipe, &self.directory, self.guid).await? {
                        stake.found(found.name, found.czxid);
                        return Ok(Entry::Staked(list(epoch, &self.directory).await?));
                    }
                }
            }
        }
    }

    fn data(&self) -> NodeData {
        NodeData {
            guid: self.guid,
            instance: self.mutex.session().config().instance.clone(),
            label: self.request.label.clone(),
            traceparent: self.request.traceparent.clone(),
            since: OffsetDateTime::now_utc(),
        }
    }

    /// Waits until the node ahead is gone. Cancel safe: the watch is taken back when it is dropped.
    async fn wait_behind(&mut self, epoch: &Arc<Epoch>, node: &str, position: usize) -> Result<(), Failure> {
        let path = format!("{}/{node}", self.directory);
        self.entered_at.get_or_insert(position);
        loop {
            // A read, since it sets no watch on a node that is not there.
            let (data, _, watcher) = match epoch
                .ask(|client| {
                    let path = &path;
                    async move { client.get_and_watch_data(path).await }
                })
                .await
            {
                Ok(found) => found,
                Err(Failure::Refused(zk::Error::NoNode)) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            if self.position != Some(position) {
                self.position = Some(position);
                self.tell_queued(node, position, &data);
            }
            let event = watcher.changed().await;
            match event.event_type {
                zk::EventType::NodeDeleted => return Ok(()),
                zk::EventType::Session => return Err(Failure::SessionOver(epoch.end().await)),
                // Somebody changed the data: it stands all the same.
                _ => {}
            }
        }
    }

    fn tell_queued(&self, node: &str, position: usize, data: &[u8]) {
        let blocker = NodeData::from_bytes(data);
        let instance = blocker.as_ref().and_then(|blocker| blocker.instance.as_deref()).unwrap_or("unknown");
        let span = tracing::Span::current();
        span.record("lock.blocker", instance);
        tracing::debug!(
            position,
            lock.blocker = instance,
            lock.blocker_node = node,
            lock.blocker_traceparent = blocker.as_ref().and_then(|blocker| blocker.traceparent.as_deref()),
            "queued behind {position}"
        );
        let wait = Queued { position, node: node.to_owned(), blocker };
        self.mutex.session().config().observer.queued(self.mutex.path(), self.mutex.recipe(), &wait);
    }
}

async fn list(epoch: &Epoch, directory: &str) -> Result<Vec<String>, Failure> {
    match epoch.ask(|client| async move { client.list_children(directory).await }).await {
        // The directory went, and all in it.
        Err(Failure::Refused(zk::Error::NoNode)) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Waits until the lease covers the stake: before `acquire` returns it has proof that its session lives.
async fn hold(stake: &Stake) {
    let mut proofs = stake.shared().epoch.lease.watch_proofs();
    while !stake.hold() {
        // Whoever drops the last epoch ends the wait through the stake's loss.
        if proofs.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
