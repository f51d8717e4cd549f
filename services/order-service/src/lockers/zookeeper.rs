//! Locks on ZooKeeper, one per SKU. A lost queue place is taken again within the same deadline.

use tokio::time::Instant;
use zk_locks::{Access, Acquire, AcquireError, Lock, Session};

use super::{Held, Hold, Kind, Label, LockError};
use crate::domain::Sku;

/// The lock of a SKU. The prefix makes `.` and `..` legal node names and leaves room for other kinds of locks.
pub(super) fn path(sku: &Sku) -> String {
    format!("/locks/stock:{sku}")
}

pub(super) async fn acquire(
    session: &Session,
    kind: Kind,
    access: Access,
    skus: &[Sku],
    deadline: Instant,
    label: &Label,
) -> Result<Held, LockError> {
    let started = Instant::now();
    loop {
        match acquire_all(session, kind, access, skus, deadline, label).await {
            Ok(holds) => return Ok(Held::new(holds, started.elapsed())),
            // The locks taken so far went with the attempt: the session they belonged to may be gone.
            Err((sku, error)) if error.is_retryable() && Instant::now() < deadline => {
                tracing::info!(%sku, %error, "queueing again");
            }
            Err((sku, error)) => return Err(translate(session, sku, error)),
        }
    }
}

async fn acquire_all(
    session: &Session,
    kind: Kind,
    access: Access,
    skus: &[Sku],
    deadline: Instant,
    label: &Label,
) -> Result<Vec<Hold>, (Sku, AcquireError)> {
    let mut holds = Vec::with_capacity(skus.len());
    for sku in skus {
        let lock = lock(session, kind, access, sku);
        let mut acquire = Acquire::until(deadline).with_label(label.text.clone());
        if let Some(traceparent) = &label.traceparent {
            acquire = acquire.with_traceparent(traceparent.clone());
        }
        let guard = lock.acquire(acquire).await.map_err(|error| (sku.clone(), error))?;
        holds.push(Hold { sku: sku.clone(), guard });
    }
    Ok(holds)
}

fn lock(session: &Session, kind: Kind, access: Access, sku: &Sku) -> Lock {
    let path = path(sku);
    let lock = match (kind, access) {
        (Kind::Mutex(recipe), _) => session.mutex(recipe, &path),
        (Kind::ReadWrite(recipe), Access::Read) => {
            session.rw_lock(recipe, &path).map(|lock| lock.read_lock().clone())
        }
        (Kind::ReadWrite(recipe), Access::Write) => {
            session.rw_lock(recipe, &path).map(|lock| lock.write_lock().clone())
        }
    };
    lock.expect("a SKU has only characters that a path may have")
}

fn translate(session: &Session, sku: Sku, error: AcquireError) -> LockError {
    match error {
        AcquireError::Timeout { .. } if !session.state().is_connected() => LockError::Unreachable,
        AcquireError::Timeout { position, .. } => LockError::Timeout { sku, position },
        AcquireError::Closed { .. } => LockError::Closed,
        AcquireError::SessionLost { .. } | AcquireError::NodeDeleted { .. } => LockError::Lost { sku },
        other => LockError::Refused { sku, reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_become_legal_node_names() {
        assert_eq!(path(&Sku::parse("..").unwrap()), "/locks/stock:..");
    }
}
