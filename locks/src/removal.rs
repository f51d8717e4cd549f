//! Removes a contender's node, however long the connection is away.
//!
//! Promises that it ends: with the node gone, or with the session. One removal runs in a task of its own, so
//! that dropping whoever asked for it changes nothing; a node that is not there is never deleted again.

use std::sync::Arc;

use zookeeper_client as zk;

use crate::claim::Claim;
use crate::clock::BootInstant;
use crate::error::{Lost, Outcome, outcome};
use crate::locate::locate;
use crate::session::epoch::{Epoch, Failure};

/// How a removal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The node was there, and we deleted it.
    ByUs,
    /// It was not there: never made, or deleted by another.
    WasNotThere,
    /// The session is over, and the node goes with it.
    WithSession(Lost),
    /// The server refused for good; said in the log. The node goes with the session.
    Refused,
}

/// What is known of the node to remove.
pub(crate) struct Removal {
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) claim: Claim,
    /// Its name, if the reply to its create is known.
    pub(crate) name: Option<String>,
}

impl Removal {
    /// Runs to its end; to be spawned.
    pub(crate) async fn run(mut self) -> Removed {
        let _counted = self.epoch.removal();
        let mut may_be_done = false;
        loop {
            let name = match self.name.take() {
                Some(name) => name,
                None => match locate(&self.epoch, &self.claim).await {
                    Ok(Some(located)) => located.name,
                    Ok(None) if may_be_done => return Removed::ByUs,
                    Ok(None) => return Removed::WasNotThere,
                    Err(failure) => return self.give_up(failure),
                },
            };
            match self.delete(&name).await {
                Ok(()) => return Removed::ByUs,
                Err(zk::Error::NoNode) if may_be_done => return Removed::ByUs,
                Err(zk::Error::NoNode) => return Removed::WasNotThere,
                Err(error) => {
                    // After a lost reply the name alone is no proof: another's node may bear it by now.
                    may_be_done |= outcome(&error) == Outcome::Unknown;
                    if let Err(failure) = self.epoch.settle(error).await {
                        return self.give_up(failure);
                    }
                }
            }
        }
    }

    async fn delete(&self, name: &str) -> Result<(), zk::Error> {
        // Not queued in the client while it is away: it would run after the reconnect unseen.
        if self.epoch.connected().await.is_err() {
            return Err(zk::Error::SessionExpired);
        }
        let client = self.epoch.client()?;
        let sent = BootInstant::now();
        let answer = client.delete(&self.claim.node_path(name), None).await;
        self.epoch.prove(sent, &answer);
        answer
    }

    fn give_up(&self, failure: Failure) -> Removed {
        match failure {
            Failure::SessionOver(reason) => Removed::WithSession(reason),
            Failure::Refused(error) => {
                tracing::error!(path = %self.claim.directory, guid = %self.claim.guid, %error, "a lock node cannot be removed");
                Removed::Refused
            }
        }
    }
}
