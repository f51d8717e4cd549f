//! Finds a contender's node again after a reply was lost: unknown outcomes are resolved, never guessed.
//!
//! Promises an answer that covers everything sent on the session before the question: a `sync` goes first, and
//! requests of one session are applied in the order of their sending.

use zookeeper_client as zk;

use crate::claim::Claim;
use crate::node::NodeData;
use crate::session::epoch::{Epoch, Failure};

/// A node that was found, by name within its directory.
pub(crate) struct Located {
    pub(crate) name: String,
    pub(crate) czxid: i64,
}

/// Looks for the node of a claim. Cancel safe: it only reads.
pub(crate) async fn locate(epoch: &Epoch, claim: &Claim) -> Result<Option<Located>, Failure> {
    let name = if claim.role.is_single_node() {
        Some(claim.name.clone())
    } else {
        find_by_guid(epoch, claim).await?
    };
    let Some(name) = name else { return Ok(None) };
    let path = &claim.node_path(&name);
    let found = epoch
        .ask(|client| async move {
            // Both leave together; the read is answered after the sync.
            let (sync, read) = (client.sync(path), client.get_data(path));
            sync.await?;
            read.await
        })
        .await;
    match found {
        Ok((data, stat)) => {
            // The guid in a name is proof; one name for all needs the data's.
            let ours = !claim.role.is_single_node()
                || NodeData::from_bytes(&data).is_some_and(|data| data.guid == claim.guid);
            Ok(ours.then_some(Located { name, czxid: stat.czxid }))
        }
        Err(Failure::Refused(zk::Error::NoNode)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn find_by_guid(epoch: &Epoch, claim: &Claim) -> Result<Option<String>, Failure> {
    let directory = &claim.directory;
    let listed = epoch
        .ask(|client| async move {
            let (sync, list) = (client.sync(directory), client.list_children(directory));
            sync.await?;
            list.await
        })
        .await;
    match listed {
        Ok(children) => Ok(children.into_iter().find(|child| child.starts_with(&claim.name))),
        Err(Failure::Refused(zk::Error::NoNode)) => Ok(None),
        Err(failure) => Err(failure),
    }
}
