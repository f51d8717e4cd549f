//! Keeps the lease of an epoch fresh, and notices when it runs out.
//!
//! Promises at most one outstanding proof, and none while other writes prove the lease anyway: a hand-over
//! costs no extra write. Does nothing while nobody holds or waits.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_client as zk;

use super::epoch::Epoch;
use super::member::SessionNode;
use crate::clock::BootInstant;

/// Proofs per session timeout.
const PROOFS_PER_TIMEOUT: u32 = 6;

/// The longest nap between two looks at the clock: timers stand still while the machine sleeps.
const LOOK_AT_MOST: Duration = Duration::from_millis(50);

/// Writes to the session's own node whenever the last proof is older than a sixth of the timeout.
pub(super) async fn renew(epoch: Arc<Epoch>, node: Arc<SessionNode>) {
    let interval = epoch.info.negotiated_timeout / PROOFS_PER_TIMEOUT;
    loop {
        epoch.wait_active().await;
        let since_proof = BootInstant::now().saturating_since(epoch.lease.proved_at());
        let fresh_for = interval.saturating_sub(since_proof);
        if !fresh_for.is_zero() {
            tokio::time::sleep(fresh_for).await;
            continue;
        }
        // Not queued while disconnected: it would leave with the reconnect, before the session was checked.
        if epoch.connected().await.is_err() {
            return;
        }
        let Ok(client) = epoch.client() else { return };
        let sent = BootInstant::now();
        let answer = node.write(&client).await;
        epoch.prove(sent, &answer);
        match answer {
            Ok(()) => {}
            Err(zk::Error::NoNode) => {
                tracing::warn!(node = %node.path, "the session's own node was deleted by another; making it again");
                if node.create(&epoch).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a proof of the lease was not answered");
                if epoch.settle(error).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Looks at the clock often enough that a lease that ran out is noticed within [`LOOK_AT_MOST`].
pub(super) async fn watch(epoch: Arc<Epoch>) {
    loop {
        epoch.wait_active().await;
        let nap = epoch.lease.remaining().clamp(Duration::from_millis(1), LOOK_AT_MOST);
        tokio::time::sleep(nap).await;
        // The look itself counts the lapse and tells those who hold.
        if epoch.lease.grant().is_none() {
            tokio::time::sleep(LOOK_AT_MOST).await;
        }
    }
}
