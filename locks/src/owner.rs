//! Reentry by an explicit owner: async tasks have no thread whose identity a lock could go by.
//!
//! Promises that an owner who holds a lock is let in again without a node and without waiting, and that the lock
//! is held until as many guards are gone as were given. Does not order an owner's own tasks among each other:
//! two first calls at once are two contenders.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use uuid::Uuid;

use crate::error::AcquireError;
use crate::guard::{Guard, Holding};
use crate::lock::{Acquire, Lock};
use crate::node::Access;

/// Somebody who may acquire a lock that it holds already. Clones are the same owner.
///
/// An owner who writes may also read. One who reads may not write: two readers that both wait for the other to go
/// would wait for ever, so it is refused at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// A new owner, different from all others.
    #[allow(clippy::new_without_default, reason = "two defaults would not be equal")]
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }
}

type Key = (Owner, String);

/// Who holds what in one session.
#[derive(Default)]
pub(crate) struct Owners {
    held: Mutex<HashMap<Key, Weak<Holding>>>,
}

impl Owners {
    fn held(&self) -> MutexGuard<'_, HashMap<Key, Weak<Holding>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an owner in again; `None` if it has to queue like everyone else.
    pub(crate) fn enter(&self, request: &Acquire, lock: &Lock) -> Option<Result<Guard, AcquireError>> {
        let key = (request.owner.clone()?, lock.path().to_owned());
        let holding = self.held().get(&key)?.upgrade()?;
        // What is lost is not held: the next guard needs a node of its own.
        holding.shared().check().ok()?;
        Some(match (holding.shared().claim.role.access(), lock.role().access()) {
            (Access::Read, Access::Write) => Err(AcquireError::UpgradeRefused { path: key.1 }),
            _ => Ok(Guard::again(holding)),
        })
    }

    /// Remembers a first guard for as long as it and those that share it live.
    pub(crate) fn remember(self: &Arc<Self>, owner: &Owner, holding: &Arc<Holding>) {
        let key = (owner.clone(), holding.shared().claim.path.clone());
        self.held().insert(key.clone(), Arc::downgrade(holding));
        holding.remembered(Remembered { owners: Arc::clone(self), key });
    }
}

/// Forgets an owner's hold when it is dropped.
pub(crate) struct Remembered {
    owners: Arc<Owners>,
    key: Key,
}

impl Drop for Remembered {
    fn drop(&mut self) {
        let mut held = self.owners.held();
        // The owner may have lost this one and got another since.
        if held.get(&self.key).is_some_and(|holding| holding.strong_count() == 0) {
            held.remove(&self.key);
        }
    }
}
