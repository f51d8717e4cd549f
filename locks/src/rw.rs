//! Read/write locks: readers share, a writer is alone, both wait in one queue.
//!
//! Promises that no reader enters past a writer that waits, so that writers do not starve, and that a writer that
//! turns into a reader lets no writer in between.

use zookeeper_client as zk;

use crate::acquire::hold;
use crate::claim::Claim;
use crate::clock::BootInstant;
use crate::directory;
use crate::error::{DowngradeError, Lost, OperationError, Outcome, PathError, outcome};
use crate::guard::{Guard, Holding};
use crate::locate::locate;
use crate::lock::Lock;
use crate::node::NodeData;
use crate::recipe::{Role, RwRecipe};
use crate::session::Session;
use crate::session::epoch::Failure;
use crate::stake::Stake;

/// A read/write lock at a path: a pair of locks that exclude each other as readers and writers do.
#[derive(Clone, Debug)]
pub struct RwLock {
    read: Lock,
    write: Lock,
}

impl RwLock {
    pub(crate) fn new(session: &Session, recipe: RwRecipe, path: &str) -> Result<Self, PathError> {
        Ok(Self {
            read: Lock::new(session.clone(), Role::Read(recipe), path)?,
            write: Lock::new(session.clone(), Role::Write(recipe), path)?,
        })
    }

    /// The lock that readers share.
    pub const fn read_lock(&self) -> &Lock {
        &self.read
    }

    /// The lock that a writer has alone.
    pub const fn write_lock(&self) -> &Lock {
        &self.write
    }
}

impl Guard {
    /// Turns a write lock into a read lock, with no writer in between: the node that writes is replaced, in one
    /// transaction, by one that reads and has the same place in the queue. Readers right behind it may enter.
    ///
    /// The other way round there is none: two readers that both wait for the other to go would wait for ever.
    ///
    /// # Errors
    /// [`DowngradeError`]; nothing is held then.
    ///
    /// # Cancel safety
    /// When the future is dropped, both nodes are removed in the background: nothing is held.
    ///
    /// # On session loss
    /// [`DowngradeError::Lost`].
    ///
    /// # Cost
    /// One transaction and two reads.
    ///
    /// # Source
    /// Curator downgrades by acquiring the read lock while it holds the write lock, which puts the reader behind
    /// the writers that wait.
    pub async fn downgrade(self) -> Result<Self, DowngradeError> {
        let path = self.path().to_owned();
        let Role::Write(recipe) = self.role() else { return Err(DowngradeError::NotAWriter { path }) };
        let Some(holding) = self.into_holding() else { return Err(DowngradeError::Shared { path }) };
        if let Err(reason) = holding.shared().check() {
            return Err(DowngradeError::Lost { path, reason });
        }
        let config = holding.session.config();
        let directory = &holding.shared().claim.directory;
        let claim = Claim::new(Role::Read(recipe), &path, directory, config.instance.as_deref());
        let reader = Stake::new(&holding.shared().epoch, claim, &config.observer, tracing::Span::current());
        let exchanged = tokio::select! {
            biased;
            reason = holding.session_end() => Err(Failure::SessionOver(reason)),
            exchanged = exchange(&holding, &reader) => exchanged,
        };
        match exchanged {
            Ok(()) => {
                let (wait, session) = (holding.wait(), holding.session.clone());
                holding.stake.exchanged(&reader);
                Ok(Self::new(session, reader, wait))
            }
            Err(Failure::SessionOver(reason)) => Err(DowngradeError::Lost { path, reason }),
            Err(Failure::Refused(zk::Error::NoNode)) => {
                Err(DowngradeError::Lost { path, reason: Lost::NodeDeleted })
            }
            Err(Failure::Refused(source)) => Err(DowngradeError::Refused {
                source: OperationError { operation: "downgrade", path: path.clone(), source },
                path,
            }),
        }
    }
}

/// Replaces the writer's node by the reader's, at the same place in the queue.
async fn exchange(writer: &Holding, reader: &Stake) -> Result<(), Failure> {
    let (old, new) = (writer.shared(), &reader.shared().claim);
    let epoch = &old.epoch;
    let sequence = old.node().name.strip_prefix(&old.claim.name).unwrap_or_default();
    let name = format!("{}{sequence}", new.name);
    let (old_path, new_path) = (old.node_path(), new.node_path(&name));
    // From here on the end of the old node is our own doing.
    writer.stake.leaving();
    loop {
        epoch.connected().await.map_err(Failure::SessionOver)?;
        let client = epoch.client().map_err(Failure::Refused)?;
        let (data, _) = client.get_data(&old_path).await.map_err(Failure::Refused)?;
        let data =
            NodeData::from_bytes(&data).map_or(data, |data| NodeData { guid: new.guid, ..data }.to_bytes());
        let mut transaction = client.new_multi_writer();
        transaction.add_create(&new_path, &data, &directory::EPHEMERAL).map_err(Failure::Refused)?;
        transaction.add_delete(&old_path, None).map_err(Failure::Refused)?;
        let sent = BootInstant::now();
        let answer = transaction.commit().await.map_err(zk::Error::from);
        epoch.prove(sent, &answer);
        match answer {
            Ok(_) => break,
            Err(error) => {
                let unknown = outcome(&error) == Outcome::Unknown;
                epoch.settle(error).await?;
                if unknown && locate(epoch, new).await?.is_some() {
                    break;
                }
            }
        }
    }
    // A create within a transaction tells no czxid before ZooKeeper 3.8.2.
    let path = &new_path;
    match epoch.ask(|client| async move { client.check_stat(path).await }).await? {
        Some(stat) => {
            reader.found(name, stat.czxid);
            hold(reader).await;
            Ok(())
        }
        None => Err(Failure::SessionOver(Lost::NodeDeleted)),
    }
}
