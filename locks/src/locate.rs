//! Finds a contender's node again after a reply was lost: unknown outcomes are resolved, never guessed.
//!
//! Promises an answer that covers everything sent on the session before the question: a `sync` goes first, and
//! requests of one session are applied in the order of their sending.

use uuid::Uuid;
use zookeeper_client as zk;

use crate::node::NodeData;
use crate::recipe::{Recipe, SIMPLE_NODE};
use crate::session::epoch::{Epoch, Failure};

/// A node that was found, by name within its directory.
pub(crate) struct Located {
    pub(crate) name: String,
    pub(crate) czxid: i64,
}

/// Looks for the node of `guid` in `directory`. Cancel safe: it only reads.
pub(crate) async fn locate(
    epoch: &Epoch,
    recipe: Recipe,
    directory: &str,
    guid: Uuid,
) -> Result<Option<Located>, Failure> {
    let name = match recipe {
        Recipe::Simple => Some(SIMPLE_NODE.to_owned()),
        Recipe::Fair => find_by_guid(epoch, recipe, directory, guid).await?,
    };
    let Some(name) = name else { return Ok(None) };
    let path = &format!("{directory}/{name}");
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
            let ours = NodeData::from_bytes(&data).is_some_and(|data| data.guid == guid);
            Ok(ours.then_some(Located { name, czxid: stat.czxid }))
        }
        Err(Failure::Refused(zk::Error::NoNode)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn find_by_guid(
    epoch: &Epoch,
    recipe: Recipe,
    directory: &str,
    guid: Uuid,
) -> Result<Option<String>, Failure> {
    let listed = epoch
        .ask(|client| async move {
            let (sync, list) = (client.sync(directory), client.list_children(directory));
            sync.await?;
            list.await
        })
        .await;
    match listed {
        Ok(children) => {
            let prefix = recipe.node_name(guid);
            Ok(children.into_iter().find(|child| child.starts_with(&prefix)))
        }
        Err(Failure::Refused(zk::Error::NoNode)) => Ok(None),
        Err(failure) => Err(failure),
    }
}
