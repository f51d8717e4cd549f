//! Several locks at once, all or none.
//!
//! Promises one order for everyone, so that two callers with the same locks in another order do not wait for each
//! other for ever, and that a failure gives back what was acquired. Locks that are taken outside of it are not
//! ordered.

use std::fmt;
use std::pin::Pin;

use crate::error::{AcquireError, Lost, PathError, ReleaseError};
use crate::guard::Guard;
use crate::lock::{Acquire, Lock};
use crate::semaphore::Semaphore;

/// What can be a part of a [`MultiLock`].
pub trait Lockable: Send + Sync {
    /// Path, by which the parts are ordered.
    fn path(&self) -> &str;

    /// Waits for it; errors, cancel safety and cost are those of the type's own method of this name.
    fn acquire(&self, request: Acquire) -> Acquiring<'_>;
}

/// A boxed call of `acquire`.
pub type Acquiring<'l> = Pin<Box<dyn Future<Output = Result<Guard, AcquireError>> + Send + 'l>>;

impl Lockable for Lock {
    fn path(&self) -> &str {
        Self::path(self)
    }

    fn acquire(&self, request: Acquire) -> Acquiring<'_> {
        Box::pin(Self::acquire(self, request))
    }
}

impl Lockable for Semaphore {
    fn path(&self) -> &str {
        Self::path(self)
    }

    fn acquire(&self, request: Acquire) -> Acquiring<'_> {
        Box::pin(Self::acquire(self, request))
    }
}

/// Several locks as one.
pub struct MultiLock {
    parts: Vec<Box<dyn Lockable>>,
}

impl MultiLock {
    /// Takes locks in any order.
    ///
    /// # Errors
    /// [`PathError`] if two have one path: the second would wait for the first for ever, and of two kinds neither can be
    /// left out.
    pub fn new<L: Lockable + 'static>(locks: impl IntoIterator<Item = L>) -> Result<Self, PathError> {
        Self::from_parts(locks.into_iter().map(|lock| Box::new(lock) as Box<dyn Lockable>).collect())
    }

    /// The same for locks of different types.
    ///
    /// # Errors
    /// As [`MultiLock::new`].
    pub fn from_parts(mut parts: Vec<Box<dyn Lockable>>) -> Result<Self, PathError> {
        parts.sort_by(|a, b| a.path().cmp(b.path()));
        match parts.windows(2).find(|pair| pair[0].path() == pair[1].path()) {
            Some(pair) => {
                Err(PathError { path: pair[0].path().to_owned(), reason: "two of the locks have it" })
            }
            None => Ok(Self { parts }),
        }
    }

    /// Waits for all of them, one after the other in the order of their paths, until one deadline.
    ///
    /// # Errors
    /// The first part's error that is not acquired. What was acquired before it is released in the background.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`]: nothing is held or left behind.
    ///
    /// # Cost
    /// The sum of the parts.
    ///
    /// # Source
    /// Curator's `InterProcessMultiLock`, which does not sort.
    pub async fn acquire(&self, request: Acquire) -> Result<MultiGuard, AcquireError> {
        let mut guards = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            guards.push(part.acquire(request.clone()).await?);
        }
        Ok(MultiGuard { guards })
    }
}

impl fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|part| part.path())).finish()
    }
}

/// The guards of all parts, in the order of their paths. Dropping it releases them in the background.
#[must_use = "the locks are released when the guard is dropped"]
#[derive(Debug)]
pub struct MultiGuard {
    guards: Vec<Guard>,
}

impl MultiGuard {
    /// The guards, each with its own token.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// A look at whether all are still held; see [`Guard::check`].
    ///
    /// # Errors
    /// The first that is lost, by its path, and why.
    pub fn check(&self) -> Result<(), (&str, Lost)> {
        self.guards.iter().try_for_each(|guard| guard.check().map_err(|reason| (guard.path(), reason)))
    }

    /// Resolves when any of them is lost; see [`Guard::lost`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        if self.guards.is_empty() {
            return std::future::pending().await;
        }
        let any = self.guards.iter().map(|guard| Box::pin(guard.lost()));
        futures::future::select_all(any).await.0
    }

    /// Releases all, the last first.
    ///
    /// # Errors
    /// The first error; all are released all the same.
    ///
    /// # Cancel safety
    /// The releases go on in the background when the future is dropped.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.guards.reverse();
        let released = futures::future::join_all(self.guards.into_iter().map(Guard::release)).await;
        released.into_iter().collect()
    }
}
