//! What is tried: every recipe by one face.

use std::sync::{Mutex, PoisonError};
use std::{fmt, sync::Arc};

use zk_locks::{
    Acquire, AcquireError, Guard, Lost, MultiGuard, MultiLock, Recipe, ReleaseError, Role, RwRecipe, Session,
};

use crate::support::{FAIR, LOCK, SIMPLE, lock};

/// A way to hold something at [`LOCK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A lock.
    Lock(Role),
    /// A semaphore of two permits.
    Semaphore,
    /// The lock and one before it.
    Multi,
}

/// A guard of any of them.
#[derive(Debug)]
pub(super) enum Held {
    One(Guard),
    All(MultiGuard),
}

/// All shares of a room: who needs them all is alone.
const ROOM: usize = 6;

impl Subject {
    pub(super) const ALL: [Self; 8] = [
        Self::Lock(SIMPLE),
        Self::Lock(FAIR),
        Self::Lock(Role::Read(RwRecipe::Broadcast)),
        Self::Lock(Role::Read(RwRecipe::Fair)),
        Self::Lock(Role::Write(RwRecipe::Broadcast)),
        Self::Lock(Role::Write(RwRecipe::Fair)),
        Self::Semaphore,
        Self::Multi,
    ];

    pub(super) async fn acquire(self, session: &Session, request: Acquire) -> Result<Held, AcquireError> {
        match self {
            Self::Lock(role) => lock(session, role).acquire(request).await.map(Held::One),
            Self::Semaphore => session.semaphore(LOCK, 2).unwrap().acquire(request).await.map(Held::One),
            Self::Multi => {
                let both = ["/locks/before", LOCK].map(|path| session.mutex(Recipe::Fair, path).unwrap());
                MultiLock::new(both).unwrap().acquire(request).await.map(Held::All)
            }
        }
    }

    /// What keeps it waiting.
    pub(super) const fn rival(self) -> Self {
        match self {
            Self::Lock(Role::Read(recipe)) => Self::Lock(Role::Write(recipe)),
            Self::Lock(Role::Write(recipe)) => Self::Lock(Role::Read(recipe)),
            Self::Multi => Self::Lock(FAIR),
            other => other,
        }
    }

    /// How many rivals it takes.
    pub(super) const fn rivals(self) -> usize {
        if matches!(self, Self::Semaphore) { 2 } else { 1 }
    }

    const fn shares(self) -> usize {
        match self {
            Self::Lock(Role::Read(_)) => 1,
            Self::Semaphore => ROOM / 2,
            _ => ROOM,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(role) => write!(f, "{role}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl Held {
    pub(super) fn check(&self) -> Result<(), Lost> {
        match self {
            Self::One(guard) => guard.check(),
            Self::All(guards) => guards.check().map_err(|(_, reason)| reason),
        }
    }

    pub(super) async fn lost(&self) -> Lost {
        match self {
            Self::One(guard) => guard.lost().await,
            Self::All(guards) => guards.lost().await,
        }
    }

    pub(super) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::One(guard) => guard.release().await,
            Self::All(guards) => guards.release().await,
        }
    }
}

/// Who is inside, as far as each knows.
#[derive(Default)]
pub(super) struct Room(Mutex<Vec<(Subject, Arc<Held>)>>);

impl Room {
    /// Enters, and looks whether everybody fits.
    pub(super) fn enter(&self, subject: Subject, held: Held) -> Arc<Held> {
        let held = Arc::new(held);
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.push((subject, Arc::clone(&held)));
        let sure = |inside: &mut Vec<(Subject, Arc<Held>)>| inside.retain(|(_, held)| held.check().is_ok());
        // A loss is final: whoever still holds at the second look held at the end of the first one, all of them at once.
        let mut holding = inside.clone();
        sure(&mut holding);
        sure(&mut holding);
        let shares: usize = holding.iter().map(|(subject, _)| subject.shares()).sum();
        assert!(shares <= ROOM, "too many inside: {holding:?}");
        held
    }

    /// Leaves.
    pub(super) fn leave(&self, held: Arc<Held>) -> Held {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, other)| !Arc::ptr_eq(other, &held));
        Arc::into_inner(held).unwrap()
    }
}
