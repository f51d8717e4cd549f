//! Lock directories: made when first needed, removed by the server when idle.
//!
//! Promises container nodes, which the server deletes some time after their last child: 50,000 locks that were
//! used once leave no znode behind.

use zookeeper_client as zk;

use crate::session::epoch::{Epoch, Failure};

/// Lock directories and everything above them.
pub(crate) const CONTAINER: zk::CreateOptions<'static> =
    zk::CreateMode::Container.with_acls(zk::Acls::anyone_all());

/// What goes with its session.
pub(crate) const EPHEMERAL: zk::CreateOptions<'static> =
    zk::CreateMode::Ephemeral.with_acls(zk::Acls::anyone_all());

/// What must outlive every session: the limit of a semaphore.
pub(crate) const PERSISTENT: zk::CreateOptions<'static> =
    zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());

/// Makes a directory and all above it.
pub(crate) async fn make(epoch: &Epoch, path: &str) -> Result<(), Failure> {
    // One of the parents may be removed as idle while we are at it; then begin again.
    loop {
        match epoch.ask(|client| async move { client.mkdir(path, &CONTAINER).await }).await {
            Err(Failure::Refused(zk::Error::NoNode)) => {}
            made => return made,
        }
    }
}
