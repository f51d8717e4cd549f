//! The session's own node, `<chroot>/_sessions/<uuid>`: proof of the lease, and who is there.
//!
//! Promises one ephemeral node per session, whose data names the process. Other programs read it to learn which
//! session belongs to whom; it grants nothing.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;
use zookeeper_client as zk;

use super::epoch::{Epoch, Failure};
use crate::clock::BootInstant;
use crate::directory;
use crate::error::OperationError;
use crate::path::ConnectString;

const DIRECTORY: &str = "/_sessions";

/// A session that is present.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    /// Id of its ZooKeeper session.
    pub session_id: i64,
    /// Transaction that created its node: the lowest came first.
    pub czxid: i64,
    /// Name of the process, if it gave one.
    pub instance: Option<String>,
    /// When the session began, by the process's wall clock.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// What the process said of itself.
    pub metadata: serde_json::Value,
    /// Whether it is the session that asked.
    pub mine: bool,
}

/// Data of a session's node, as JSON: `{"instance":"order-1","since":"…","metadata":{…}}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MemberData {
    #[serde(default)]
    instance: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    since: OffsetDateTime,
    #[serde(default)]
    metadata: serde_json::Value,
}

pub(crate) struct SessionNode {
    pub(crate) path: String,
    directory: String,
    data: Vec<u8>,
}

impl SessionNode {
    pub(crate) fn new(root: &ConnectString, instance: Option<&str>, metadata: &serde_json::Value) -> Self {
        let directory = root.absolute(DIRECTORY);
        let data = MemberData {
            instance: instance.map(ToOwned::to_owned),
            since: OffsetDateTime::now_utc(),
            metadata: metadata.clone(),
        };
        Self {
            path: format!("{directory}/{}", Uuid::new_v4()),
            directory,
            data: serde_json::to_vec(&data).unwrap_or_default(),
        }
    }

    /// Makes the node, and with it the first proof of the lease.
    pub(crate) async fn create(&self, epoch: &Epoch) -> Result<(), Failure> {
        loop {
            let created = epoch
                .ask(|client| async move {
                    let sent = BootInstant::now();
                    let answer = client.create(&self.path, &self.data, &directory::EPHEMERAL).await;
                    epoch.prove(sent, &answer);
                    answer
                })
                .await;
            match created {
                // An earlier try whose reply was lost made it: the name is ours alone.
                Ok(_) | Err(Failure::Refused(zk::Error::NodeExists)) => return Ok(()),
                Err(Failure::Refused(zk::Error::NoNode)) => directory::make(epoch, &self.directory).await?,
                Err(failure) => return Err(failure),
            }
        }
    }

    pub(crate) async fn write(&self, client: &zk::Client) -> Result<(), zk::Error> {
        client.set_data(&self.path, &self.data, None).await.map(|_| ())
    }

    /// Whether the connection still speaks for the session that made the node. A server that does not know a
    /// session may answer a reconnect with a new one, and the client takes it without a word.
    pub(crate) async fn is_mine(&self, client: &zk::Client) -> Result<bool, zk::Error> {
        match client.list_ephemerals(&self.path).await {
            Ok(paths) => Ok(paths.contains(&self.path)),
            // A server older than 3.6 cannot say.
            Err(zk::Error::Unimplemented) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Lists who is present, oldest first.
pub(crate) async fn list(
    client: &zk::Client,
    root: &ConnectString,
    mine: Option<i64>,
) -> Result<Vec<Member>, OperationError> {
    let directory = root.absolute(DIRECTORY);
    let failed = |operation, path: &str| {
        let path = path.to_owned();
        move |source| OperationError { operation, path, source }
    };
    let names = match client.list_children(&directory).await {
        Ok(names) => names,
        Err(zk::Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", &directory)(error)),
    };
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        let path = format!("{directory}/{name}");
        let (data, stat) = match client.get_data(&path).await {
            Ok(found) => found,
            Err(zk::Error::NoNode) => continue,
            Err(error) => return Err(failed("get", &path)(error)),
        };
        let Ok(data) = serde_json::from_slice::<MemberData>(&data) else { continue };
        members.push(Member {
            session_id: stat.ephemeral_owner,
            czxid: stat.czxid,
            instance: data.instance,
            since: data.since,
            metadata: data.metadata,
            mine: mine == Some(stat.ephemeral_owner),
        });
    }
    members.sort_by_key(|member| member.czxid);
    Ok(members)
}
