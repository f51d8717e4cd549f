//! One ZooKeeper session, from its creation to its end.
//!
//! Promises that whatever asks it for something learns of its end, and that a request whose reply was lost is
//! never reported as done or not done. It is never revived: after its end a new epoch takes its place.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rand::RngExt as _;
use tokio::runtime::Handle;
use tokio::sync::watch;
use zookeeper_client as zk;

use super::lease::LeaseKeeper;
use super::{SessionInfo, lease};
use crate::clock::BootInstant;
use crate::error::{Lost, Outcome, outcome};

/// Pause before a request is sent again whose reply was lost: short, and different for every task.
const RETRY_PAUSE_MS: std::ops::Range<u64> = 10..60;

/// Why an epoch did not answer a request.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The session is over.
    SessionOver(Lost),
    /// The server's final word.
    Refused(zk::Error),
}

pub(crate) struct Epoch {
    /// Taken out to close the session: the library sends the close when its last handle goes.
    client: RwLock<Option<zk::Client>>,
    pub(crate) info: SessionInfo,
    pub(crate) lease: LeaseKeeper,
    pub(crate) runtime: Handle,
    connected: watch::Sender<bool>,
    end: watch::Sender<Option<Lost>>,
    /// Waiters and holders: while there are any, the lease is kept fresh.
    active: watch::Sender<usize>,
    /// Nodes whose removal has begun and is not settled yet.
    removals: watch::Sender<usize>,
}

impl Epoch {
    pub(crate) fn new(client: zk::Client) -> Arc<Self> {
        let negotiated_timeout = client.session_timeout();
        let info = SessionInfo {
            id: client.session_id().0,
            negotiated_timeout,
            lease: lease::length(negotiated_timeout),
        };
        Arc::new(Self {
            client: RwLock::new(Some(client)),
            info,
            lease: LeaseKeeper::new(negotiated_timeout),
            runtime: Handle::current(),
            connected: watch::Sender::new(true),
            end: watch::Sender::new(None),
            active: watch::Sender::new(0),
            removals: watch::Sender::new(0),
        })
    }

    /// A handle for one request or a few that must leave together; not to be kept.
    pub(crate) fn client(&self) -> Result<zk::Client, zk::Error> {
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner);
        client.clone().ok_or(zk::Error::ClientClosed)
    }

    /// Ends the session at the server, by dropping the handle that keeps it open.
    pub(crate) fn disconnect(&self) {
        drop(self.client.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        self.connected.send_replace(connected);
    }

    /// Changes with the connection, not before it does.
    pub(crate) fn watch_connection(&self) -> watch::Receiver<bool> {
        self.connected.subscribe()
    }

    pub(crate) fn finish(&self, reason: Lost) {
        self.end.send_if_modified(|end| end.replace(reason).is_none());
    }

    pub(crate) fn ended(&self) -> Option<Lost> {
        *self.end.borrow()
    }

    /// Resolves when the session is over. Cancel safe.
    pub(crate) async fn end(&self) -> Lost {
        let mut end = self.end.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        match end.wait_for(Option::is_some).await.map(|end| *end) {
            Ok(Some(reason)) => reason,
            Ok(None) | Err(_) => Lost::Closed,
        }
    }

    /// Waits until requests are worth sending: nothing of ours is queued in the client while it is away.
    pub(crate) async fn connected(&self) -> Result<(), Lost> {
        let mut connected = self.connected.subscribe();
        tokio::select! {
            biased;
            reason = self.end() => Err(reason),
            _ = connected.wait_for(|connected| *connected) => Ok(()),
        }
    }

    /// Sends a request that may be sent any number of times, until the server answers it.
    ///
    /// Cancel safe in the sense that nothing is left to clean up. A definite refusal is returned, not retried.
    pub(crate) async fn ask<T, F>(&self, request: impl Fn(zk::Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, zk::Error>>,
    {
        loop {
            self.connected().await.map_err(Failure::SessionOver)?;
            let answer = match self.client() {
                Ok(client) => request(client).await,
                Err(closed) => Err(closed),
            };
            match answer {
                Ok(value) => return Ok(value),
                Err(error) => self.settle(error).await?,
            }
        }
    }

    /// Returns when a request that failed with `error` may be tried again, or says why it may not.
    pub(crate) async fn settle(&self, error: zk::Error) -> Result<(), Failure> {
        match outcome(&error) {
            Outcome::Definite => Err(Failure::Refused(error)),
            Outcome::SessionOver => Err(Failure::SessionOver(self.end().await)),
            Outcome::Unknown => {
                let pause = rand::rng().random_range(RETRY_PAUSE_MS);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.connected().await.map_err(Failure::SessionOver)
            }
        }
    }

    /// A write sent at `sent` was answered just now, with success or a refusal: either proves the session.
    pub(crate) fn prove<T>(&self, sent: BootInstant, answer: &Result<T, zk::Error>) {
        let answered = match answer {
            Ok(_) => true,
            Err(error) => outcome(error) == Outcome::Definite,
        };
        if answered {
            self.lease.prove(sent);
        }
    }

    /// Keeps the lease fresh for as long as the returned value lives.
    pub(crate) fn activity(self: &Arc<Self>) -> Counted {
        Counted::new(self, |epoch| &epoch.active)
    }

    /// Keeps the session from closing (within the closer's grace) for as long as the returned value lives.
    pub(crate) fn removal(self: &Arc<Self>) -> Counted {
        Counted::new(self, |epoch| &epoch.removals)
    }

    pub(crate) async fn wait_active(&self) {
        let mut active = self.active.subscribe();
        if active.wait_for(|count| *count > 0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn wait_removed(&self) {
        let mut removals = self.removals.subscribe();
        if removals.wait_for(|count| *count == 0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Counts itself in one of an epoch's counters.
pub(crate) struct Counted {
    epoch: Arc<Epoch>,
    counter: fn(&Epoch) -> &watch::Sender<usize>,
}

impl Counted {
    fn new(epoch: &Arc<Epoch>, counter: fn(&Epoch) -> &watch::Sender<usize>) -> Self {
        counter(epoch).send_modify(|count| *count += 1);
        Self { epoch: Arc::clone(epoch), counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.epoch).send_modify(|count| *count -= 1);
    }
}
