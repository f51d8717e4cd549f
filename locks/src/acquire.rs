//! The engine: gets a contender from its call to its guard, the same way for every recipe.
//!
//! Promises what [`Lock::acquire`](crate::Lock::acquire) documents. It owns no clean-up of its own: whatever it
//! drops, at whatever await, the [`Stake`] removes.

use rand::RngExt as _;
use time::OffsetDateTime;
use tracing::Span;
use zookeeper_client as zk;

use crate::claim::Claim;
use crate::clock::BootInstant;
use crate::directory;
use crate::error::{AcquireError, Lost, Outcome, outcome};
use crate::guard::{Guard, Wait};
use crate::locate::locate;
use crate::lock::{Acquire, Lock};
use crate::node::NodeData;
use crate::observer::{Attempt, Queued};
use crate::session::epoch::{Epoch, Failure};
use crate::stake::Stake;
use crate::story;
use crate::turn::{Turn, turn};

/// One call of `acquire`.
pub(crate) struct Contender<'l> {
    lock: &'l Lock,
    attempt: &'l Attempt,
    request: Acquire,
    claim: Claim,
    /// How many were in the way: at entry, and when last looked.
    entered_at: Option<usize>,
    position: Option<usize>,
    patient: bool,
    /// The span that asked.
    caller: Span,
}

/// What putting a node into the directory came to.
enum Entry {
    /// It stands; with what a listing sent right behind it found.
    Staked(Listing),
    /// The one place of the simple recipe is taken.
    Taken,
}

/// The children of the lock's directory, and the watch on them of a recipe that has one.
#[derive(Default)]
struct Listing {
    children: Vec<String>,
    watcher: Option<zk::OneshotWatcher>,
}

impl<'l> Contender<'l> {
    pub(crate) fn new(
        lock: &'l Lock,
        attempt: &'l Attempt,
        request: Acquire,
        patient: bool,
        caller: Span,
    ) -> Self {
        let config = lock.session().config();
        let directory = config.connect.absolute(lock.path());
        let claim = Claim::new(lock.role(), lock.path(), &directory, config.instance.as_deref());
        Self { lock, attempt, request, claim, entered_at: None, position: None, patient, caller }
    }

    /// Runs until the lock is held or cannot be. The caller's deadline ends it by dropping it.
    pub(crate) async fn run(&mut self) -> Result<Guard, AcquireError> {
        let session = self.lock.session();
        let Some(epoch) = session.epoch().await else {
            return Err(AcquireError::Closed { path: self.path() });
        };
        let observer = &session.config().observer;
        let stake = Stake::new(&epoch, self.claim.clone(), observer, self.caller.clone());
        let turn = tokio::select! {
            biased;
            reason = stake.shared().lost() => Err(Failure::SessionOver(reason)),
            turn = self.wait_for_turn(&stake) => turn,
        };
        match turn {
            Ok(true) => {
                let guard = Guard::new(session.clone(), stake, self.wait());
                if let Some(owner) = &self.request.owner {
                    session.owners().remember(owner, guard.holding());
                }
                Ok(guard)
            }
            Ok(false) => {
                // The node of a try that failed is gone when the caller hears of it.
                let _settled = stake.leave().await;
                Err(AcquireError::Busy { path: self.path() })
            }
            Err(failure) => Err(AcquireError::of(failure, self.lock.path())),
        }
    }

    fn path(&self) -> String {
        self.lock.path().to_owned()
    }

    fn wait(&self) -> Wait {
        Wait {
            position: self.entered_at.unwrap_or(0),
            waited: self.attempt.waited(),
            acquired_at: OffsetDateTime::now_utc(),
        }
    }

    pub(crate) fn timed_out(&self) -> AcquireError {
        AcquireError::Timeout { path: self.path(), waited: self.attempt.waited(), position: self.position }
    }

    /// `true` when the lock is held, `false` when an impatient contender is not the first.
    async fn wait_for_turn(&mut self, stake: &Stake) -> Result<bool, Failure> {
        let epoch = &stake.shared().epoch;
        let mut listing = loop {
            match self.enter(stake).await? {
                Entry::Staked(listing) => break listing,
                Entry::Taken if !self.patient => return Ok(false),
                Entry::Taken => {
                    let single = self.claim.name.clone();
                    self.wait_behind(epoch, &single, 1).await?;
                    self.back_off().await;
                }
            }
        };
        loop {
            let ahead = match self.turn(stake, &listing.children) {
                Turn::Mine => break,
                Turn::Gone => return Err(Failure::SessionOver(Lost::NodeDeleted)),
                Turn::Behind { .. } if !self.patient => return Ok(false),
                Turn::Behind { node, position } => {
                    match listing.watcher {
                        Some(watcher) => self.wait_for_change(epoch, &node, position, watcher).await?,
                        None => self.wait_behind(epoch, &node, position).await?,
                    }
                    position
                }
            };
            if ahead == 1 && self.claim.role.second_is_next() {
                break;
            }
            listing = self.list(epoch).await?;
        }
        self.entered_at.get_or_insert(0);
        self.position = Some(0);
        hold(stake).await;
        Ok(true)
    }

    fn turn(&self, stake: &Stake, children: &[String]) -> Turn {
        // Whoever made the one node of the simple recipe holds.
        if self.claim.role.is_single_node() {
            Turn::Mine
        } else {
            turn(children, &stake.shared().node().name)
        }
    }

    /// Makes the node. A reply that was lost is resolved by looking for the node before another is made.
    async fn enter(&self, stake: &Stake) -> Result<Entry, Failure> {
        let epoch = &stake.shared().epoch;
        let role = self.claim.role;
        let path = self.claim.node_path(&self.claim.name);
        let options = role.create_mode().with_acls(zk::Acls::anyone_all());
        let data = self.data().to_bytes();
        loop {
            epoch.connected().await.map_err(Failure::SessionOver)?;
            let client = epoch.client().map_err(Failure::Refused)?;
            let sent = BootInstant::now();
            // Both leave together: the listing is answered after the create.
            let create = client.create(&path, &data, &options);
            let directory = &self.claim.directory;
            let watched = role.watches_directory().then(|| client.list_and_watch_children(directory));
            let plain =
                (watched.is_none() && !role.is_single_node()).then(|| client.list_children(directory));
            let created = create.await;
            epoch.prove(sent, &created);
            match created {
                Ok((stat, _)) if stat.ephemeral_owner != epoch.info.id => {
                    // Made under a session that nobody told us of: not ours to hold, and gone with it.
                    tracing::error!(session = %epoch.info, "a node was made by another session");
                    return Err(Failure::SessionOver(Lost::SessionExpired));
                }
                Ok((stat, sequence)) => {
                    let name = if role.is_single_node() {
                        self.claim.name.clone()
                    } else {
                        format!("{}{sequence}", self.claim.name)
                    };
                    self.found(stake, name, stat.czxid);
                    let listed = match (watched, plain) {
                        (Some(watched), _) => watched.await.map(Listing::watched),
                        (None, Some(plain)) => plain.await.map(Listing::plain),
                        (None, None) => Ok(Listing::default()),
                    };
                    return match listed {
                        Ok(listing) => Ok(Entry::Staked(listing)),
                        Err(error) => {
                            epoch.settle(error).await?;
                            Ok(Entry::Staked(self.list(epoch).await?))
                        }
                    };
                }
                Err(zk::Error::NoNode) => directory::make(epoch, &self.claim.directory).await?,
                Err(zk::Error::NodeExists) => return Ok(Entry::Taken),
                Err(error) => {
                    let unknown = outcome(&error) == Outcome::Unknown;
                    epoch.settle(error).await?;
                    if unknown && let Some(found) = locate(epoch, &self.claim).await? {
                        self.found(stake, found.name, found.czxid);
                        return Ok(Entry::Staked(self.list(epoch).await?));
                    }
                }
            }
        }
    }

    fn found(&self, stake: &Stake, name: String, czxid: i64) {
        let node = stake.found(name, czxid);
        Span::current().record("lock.node", self.claim.node_path(&node.name));
    }

    fn data(&self) -> NodeData {
        NodeData {
            guid: self.claim.guid,
            instance: self.lock.session().config().instance.clone(),
            label: self.request.label.clone(),
            traceparent: self.request.traceparent.clone(),
            since: OffsetDateTime::now_utc(),
            revoke: None,
        }
    }

    /// Lists the children, again after lost replies; none if the directory is gone.
    async fn list(&self, epoch: &Epoch) -> Result<Listing, Failure> {
        let directory = &self.claim.directory;
        let listed = if self.claim.role.watches_directory() {
            let asked = epoch.ask(|client| async move { client.list_and_watch_children(directory).await });
            asked.await.map(Listing::watched)
        } else {
            epoch.ask(|client| async move { client.list_children(directory).await }).await.map(Listing::plain)
        };
        match listed {
            Err(Failure::Refused(zk::Error::NoNode)) => Ok(Listing::default()),
            listed => listed,
        }
    }

    /// Waits until the node in the way is gone. Cancel safe: the watch is taken back when it is dropped.
    async fn wait_behind(&mut self, epoch: &Epoch, node: &str, position: usize) -> Result<(), Failure> {
        self.entered_at.get_or_insert(position);
        let path = &self.claim.node_path(node);
        loop {
            // A read, since it sets no watch on a node that is not there.
            let asked = epoch.ask(|client| async move { client.get_and_watch_data(path).await });
            let (data, stat, watcher) = match asked.await {
                Ok(found) => found,
                Err(Failure::Refused(zk::Error::NoNode)) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            self.tell_queued(node, position, &data, stat.ephemeral_owner);
            match watcher.changed().await.event_type {
                zk::EventType::NodeDeleted => return Ok(()),
                zk::EventType::Session => return Err(Failure::SessionOver(epoch.end().await)),
                // Somebody changed the data: it stands all the same.
                _ => {}
            }
        }
    }

    /// Waits until anything in the directory changes. Cancel safe: the watch is taken back when it is dropped.
    async fn wait_for_change(
        &mut self,
        epoch: &Epoch,
        node: &str,
        position: usize,
        watcher: zk::OneshotWatcher,
    ) -> Result<(), Failure> {
        self.entered_at.get_or_insert(position);
        if self.position != Some(position) {
            let path = &self.claim.node_path(node);
            match epoch.ask(|client| async move { client.get_data(path).await }).await {
                Ok((data, stat)) => self.tell_queued(node, position, &data, stat.ephemeral_owner),
                Err(Failure::Refused(zk::Error::NoNode)) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
        match watcher.changed().await.event_type {
            zk::EventType::Session => Err(Failure::SessionOver(epoch.end().await)),
            _ => Ok(()),
        }
    }

    /// Spreads the herd, where the lock's user asked for it.
    async fn back_off(&self) {
        if let Some(most) = self.lock.back_off() {
            let pause = most.mul_f64(rand::rng().random_range(0.0..1.0));
            tokio::time::sleep(pause).await;
        }
    }

    /// Tells of the place in the queue, once for each place.
    fn tell_queued(&mut self, node: &str, position: usize, data: &[u8], session: i64) {
        let before = self.position.replace(position);
        if before == Some(position) {
            return;
        }
        let wait = Queued {
            position,
            node: node.to_owned(),
            session_id: session,
            blocker: NodeData::from_bytes(data),
        };
        story::queued(&wait, before.is_some());
        self.lock.session().config().observer.queued(self.attempt, &wait);
    }
}

impl Listing {
    fn plain(children: Vec<String>) -> Self {
        Self { children, watcher: None }
    }

    fn watched((children, watcher): (Vec<String>, zk::OneshotWatcher)) -> Self {
        Self { children, watcher: Some(watcher) }
    }
}

/// Waits until the lease covers the stake: before `acquire` returns it has proof that its session lives.
pub(crate) async fn hold(stake: &Stake) {
    let mut proofs = stake.shared().epoch.lease.watch_proofs();
    while !stake.hold() {
        // Whoever drops the last epoch ends the wait through the stake's loss.
        if proofs.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
