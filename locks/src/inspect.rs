//! Looks at locks from outside: who holds, who waits, since when, in which session.
//!
//! Promises to need nothing but a connection: it works on locks of other processes, and on ones made by Curator or
//! kazoo. It reads, unless it is told to ask a holder to let go or to remove a node. What it shows may be over by
//! the time it is read.

use serde::Serialize;
use time::OffsetDateTime;
use zookeeper_client as zk;

use crate::directory;
use crate::error::OperationError;
use crate::node::{self, NodeData, Revocation};
use crate::path::ConnectString;
use crate::recipe::SIMPLE_NODE;
use crate::session::Member;
use crate::session::member;
use crate::turn;

/// Begins the name of a node that is made only to see its token.
const PROBE: &str = "lockstock-token-";

/// A lock directory and its queue.
#[derive(Debug, Clone, Serialize)]
pub struct LockView {
    /// Path of the lock, without the chroot.
    pub path: String,
    /// Its contenders, the holder first.
    pub entries: Vec<LockEntry>,
}

/// One contender.
#[derive(Debug, Clone, Serialize)]
pub struct LockEntry {
    /// Name of its node.
    pub node: String,
    /// 0 holds, 1 is next.
    pub position: usize,
    /// Its fencing token.
    pub token: i64,
    /// The ZooKeeper session that it belongs to.
    pub session_id: i64,
    /// Name of its process, if this library wrote the node.
    pub instance: Option<String>,
    /// W3C trace context of the request behind it.
    pub traceparent: Option<String>,
    /// What it wants the lock for.
    pub label: Option<String>,
    /// When the server made the node, by the server's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
}

/// A connection for looking.
#[derive(Debug)]
pub struct Inspector {
    client: zk::Client,
    root: ConnectString,
}

impl Inspector {
    /// Connects, within the default session timeout at most.
    ///
    /// # Errors
    /// [`OperationError`] if the connect string is bad or no server answers.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn connect(connect: &str) -> Result<Self, OperationError> {
        let failed = |source| OperationError { operation: "connect", path: connect.to_owned(), source };
        let root = ConnectString::parse(connect)
            .map_err(|_| failed(zk::Error::BadArguments(&"not a ZooKeeper connect string")))?;
        let connector = zk::Client::connector().with_fail_eagerly();
        let client = connector.connect(&root.hosts).await.map_err(failed)?;
        Ok(Self { client, root })
    }

    pub(crate) const fn over(client: zk::Client, root: ConnectString) -> Self {
        Self { client, root }
    }

    /// All lock directories at and under `path`, idle ones included, sorted by path.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails; directories that vanish meanwhile are left out.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Cost
    /// One listing for each directory and one read for each contender.
    pub async fn locks(&self, path: &str) -> Result<Vec<LockView>, OperationError> {
        let mut views = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let Some(children) = self.children(&path).await? else { continue };
            let (contenders, directories): (Vec<_>, Vec<_>) =
                children.into_iter().partition(|child| is_contender(child));
            if (directories.is_empty() && path != "/") || !contenders.is_empty() {
                views.push(self.view(&path, &contenders).await?);
            }
            open.extend(directories.iter().map(|child| format!("{}/{child}", path.trim_end_matches('/'))));
        }
        views.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(views)
    }

    /// One lock directory; without entries if it does not exist.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn lock(&self, path: &str) -> Result<LockView, OperationError> {
        let mut children = self.children(path).await?.unwrap_or_default();
        children.retain(|child| is_contender(child));
        self.view(path, &children).await
    }

    /// Whoever holds a lock, if anybody does: the head of its queue.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Cost
    /// One listing and one read, however long the queue is; again if the head left in between.
    pub async fn holder(&self, path: &str) -> Result<Option<LockEntry>, OperationError> {
        loop {
            let children = self.children(path).await?.unwrap_or_default();
            let Some(head) = turn::head(&children) else { return Ok(None) };
            if let Some(entry) = self.view(path, &[head.to_owned()]).await?.entries.pop() {
                return Ok(Some(entry));
            }
        }
    }

    /// The sessions of this library, oldest first.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn members(&self) -> Result<Vec<Member>, OperationError> {
        member::list(&self.client, &self.root, None).await
    }

    /// Asks whoever holds a lock to let go; true if there was somebody to ask.
    pub(crate) async fn revoke_holder(&self, path: &str, asked: &Revocation) -> Result<bool, OperationError> {
        let Some(holder) = self.holder(path).await? else { return Ok(false) };
        let absolute = self.root.absolute(&format!("{path}/{}", holder.node));
        let failed = |source| OperationError { operation: "revoke", path: absolute.clone(), source };
        let (data, stat) = match self.client.get_data(&absolute).await {
            Ok(found) => found,
            Err(zk::Error::NoNode) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let data = match NodeData::from_bytes(&data) {
            Some(data) => NodeData { revoke: Some(asked.clone()), ..data }.to_bytes(),
            // A holder of Curator's listens for this.
            None => node::CURATOR_REVOKE.to_vec(),
        };
        match self.client.set_data(&absolute, &data, Some(stat.version)).await {
            Ok(_) => Ok(true),
            Err(zk::Error::NoNode) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes a contender's node, for an operator who knows that its owner is gone for good. A living owner is
    /// told of it as [`Lost::NodeDeleted`](crate::Lost::NodeDeleted); its token stays what it was.
    ///
    /// Only a node whose token is `token` is removed, so that nobody else's is hit who came meanwhile. True if
    /// it was there.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// The node may or may not have been removed.
    pub async fn remove(&self, path: &str, node: &str, token: i64) -> Result<bool, OperationError> {
        let absolute = self.root.absolute(&format!("{path}/{node}"));
        let failed = |source| OperationError { operation: "delete", path: absolute.clone(), source };
        match self.client.check_stat(&absolute).await.map_err(failed)? {
            Some(stat) if stat.czxid == token => {}
            _ => return Ok(false),
        }
        match self.client.delete(&absolute, None).await {
            Ok(()) => Ok(true),
            Err(zk::Error::NoNode) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// The token that a lock acquired now would have, at the least. Tokens in the hands of others that are higher come
    /// from an ensemble whose data is gone.
    ///
    /// Makes an ephemeral node `<chroot>/lockstock-token-<guid>` and removes it.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: what is left of it ends with the inspector.
    ///
    /// # Cost
    /// Two writes.
    pub async fn token_now(&self) -> Result<i64, OperationError> {
        let absolute = self.root.absolute(&format!("/{}{}", PROBE, uuid::Uuid::new_v4().simple()));
        let failed = |operation, source| OperationError { operation, path: absolute.clone(), source };
        let made = self.create(&absolute, &[], &directory::EPHEMERAL).await;
        let stat = made.map_err(|source| failed("create", source))?;
        match self.client.delete(&absolute, None).await {
            Ok(()) | Err(zk::Error::NoNode) => Ok(stat.czxid),
            Err(source) => Err(failed("delete", source)),
        }
    }

    /// Writes the limit of a semaphore.
    pub(crate) async fn write_limit(&self, path: &str, limit: u32) -> Result<(), OperationError> {
        let absolute = self.root.absolute(path);
        let failed = |source| OperationError { operation: "set", path: absolute.clone(), source };
        let data = limit.to_be_bytes();
        loop {
            match self.client.set_data(&absolute, &data, None).await {
                Ok(_) => return Ok(()),
                Err(zk::Error::NoNode) => {}
                Err(error) => return Err(failed(error)),
            }
            match self.create(&absolute, &data, &directory::PERSISTENT).await {
                Ok(_) => return Ok(()),
                Err(zk::Error::NodeExists) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Ends the connection and waits, for a second at most, until the server has confirmed it.
    ///
    /// # Cancel safety
    /// The connection ends all the same, without the confirmation.
    pub async fn close(self) {
        let mut states = self.client.state_watcher();
        drop(self.client);
        let ended = async { while !states.changed().await.is_terminated() {} };
        let _confirmed = tokio::time::timeout(std::time::Duration::from_secs(1), ended).await.is_ok();
    }

    /// Makes a node, and the directories above it where they are missing.
    async fn create(
        &self,
        absolute: &str,
        data: &[u8],
        options: &zk::CreateOptions<'_>,
    ) -> Result<zk::Stat, zk::Error> {
        loop {
            match self.client.create(absolute, data, options).await {
                Err(zk::Error::NoNode) => {
                    let parent = absolute.rsplit_once('/').map_or("", |(parent, _)| parent);
                    self.client.mkdir(parent, &directory::CONTAINER).await?;
                }
                made => return made.map(|(stat, _)| stat),
            }
        }
    }

    async fn children(&self, path: &str) -> Result<Option<Vec<String>>, OperationError> {
        let absolute = self.root.absolute(path);
        match self.client.list_children(&absolute).await {
            Ok(children) => Ok(Some(children)),
            Err(zk::Error::NoNode) => Ok(None),
            Err(source) => Err(OperationError { operation: "list", path: absolute, source }),
        }
    }

    async fn view(&self, path: &str, contenders: &[String]) -> Result<LockView, OperationError> {
        let mut entries = Vec::with_capacity(contenders.len());
        for name in contenders {
            let absolute = self.root.absolute(&format!("{}/{name}", path.trim_end_matches('/')));
            match self.client.get_data(&absolute).await {
                Ok((data, stat)) => entries.push(LockEntry::new(name, &data, &stat)),
                Err(zk::Error::NoNode) => {}
                Err(source) => return Err(OperationError { operation: "get", path: absolute, source }),
            }
        }
        // Order of creation is order of sequence, also where the counter wrapped.
        entries.sort_by_key(|entry| entry.token);
        for (position, entry) in entries.iter_mut().enumerate() {
            entry.position = position;
        }
        Ok(LockView { path: path.to_owned(), entries })
    }
}

impl LockEntry {
    fn new(name: &str, data: &[u8], stat: &zk::Stat) -> Self {
        let data = NodeData::from_bytes(data);
        let (instance, traceparent, label) =
            data.map_or((None, None, None), |data| (data.instance, data.traceparent, data.label));
        Self {
            node: name.to_owned(),
            position: 0,
            token: stat.czxid,
            session_id: stat.ephemeral_owner,
            instance,
            traceparent,
            label,
            since: OffsetDateTime::from_unix_timestamp_nanos(i128::from(stat.ctime) * 1_000_000)
                .unwrap_or(OffsetDateTime::UNIX_EPOCH),
        }
    }
}

fn is_contender(name: &str) -> bool {
    name == SIMPLE_NODE || node::parse(name).is_some()
}
