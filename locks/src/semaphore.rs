//! Semaphores: a number of permits that can be held at once, and a number that can change while others wait.
//!
//! Promises that no more permits are held than the limit that was in force when the last one was given, and that
//! waiters are served in the order of arrival. A lowered limit takes nothing away from those who hold.

use zookeeper_client as zk;

use crate::error::{AcquireError, OperationError, PathError};
use crate::guard::Guard;
use crate::lock::{Acquire, Lock};
use crate::node::parse;
use crate::recipe::{Recipe, Role};
use crate::session::Session;
use crate::session::epoch::{Epoch, Failure};

/// A semaphore at a path, in the layout of Curator's `InterProcessSemaphoreV2`.
///
/// | znode | what |
/// |---|---|
/// | `<path>/locks/_c_<guid>-lock-<seq>` | the queue: only its head looks for a permit, so that there is no herd |
/// | `<path>/leases/_c_<guid>-lease-<seq>` | one for each permit that is held |
/// | `<path>/limit` | the limit that was set, 4 bytes, big endian, as in Curator's `SharedCount`; absent until then |
#[derive(Clone, Debug)]
pub struct Semaphore {
    session: Session,
    path: String,
    limit: u32,
    queue: Lock,
    permits: Lock,
}

impl Semaphore {
    pub(crate) fn new(session: &Session, path: &str, limit: u32) -> Result<Self, PathError> {
        Ok(Self {
            session: session.clone(),
            path: path.to_owned(),
            limit,
            queue: Lock::new(session.clone(), Role::Mutex(Recipe::Fair), &format!("{path}/locks"))?,
            permits: Lock::new(session.clone(), Role::Permit, &format!("{path}/leases"))?,
        })
    }

    /// Path of the semaphore, without the chroot.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`]: nothing is left behind.
    ///
    /// # On session loss
    /// As [`Lock::acquire`]; a permit of a session that ended is free.
    ///
    /// # Cost
    /// That of a fair lock for the queue, and for its head a listing and a create, and two watches while it waits.
    pub async fn acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        let deadline = request.deadline();
        let turn = self.queue.acquire(request.clone()).await.map_err(|error| error.said_of(&self.path))?;
        match tokio::time::timeout_at(deadline, self.head(turn, request.clone(), true)).await {
            Ok(given) => given,
            Err(_) => Err(self.timed_out(&request)),
        }
    }

    /// Takes a permit if one is free and nobody waits.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if there is none; else as [`Lock::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn try_acquire(&self, request: Acquire) -> Result<Guard, AcquireError> {
        let deadline = request.deadline();
        let turn =
            self.queue.try_acquire(request.clone()).await.map_err(|error| error.said_of(&self.path))?;
        match tokio::time::timeout_at(deadline, self.head(turn, request.clone(), false)).await {
            Ok(given) => given,
            Err(_) => Err(self.timed_out(&request)),
        }
    }

    /// Sets the limit for everyone who uses the path, those who wait included.
    ///
    /// # Errors
    /// [`OperationError`] if a request fails; the limit may have been set.
    ///
    /// # Cancel safety
    /// The limit may or may not have been set.
    pub async fn set_limit(&self, limit: u32) -> Result<(), OperationError> {
        self.session.inspector()?.write_limit(&self.limit_path(), limit).await
    }

    fn limit_path(&self) -> String {
        format!("{}/limit", self.path)
    }

    fn timed_out(&self, request: &Acquire) -> AcquireError {
        AcquireError::Timeout { path: self.path.clone(), waited: request.waited(), position: Some(1) }
    }

    /// Waits, at the head of the queue, until fewer permits are held than there are.
    async fn head(&self, turn: Guard, request: Acquire, patient: bool) -> Result<Guard, AcquireError> {
        loop {
            let (free, changed) = tokio::select! {
                biased;
                reason = turn.lost() => return Err(self.failed(Failure::SessionOver(reason))),
                looked = self.look(&turn) => looked.map_err(|failure| self.failed(failure))?,
            };
            if free {
                let permit =
                    self.permits.acquire(request.clone()).await.map_err(|error| error.said_of(&self.path))?;
                // Whoever lost the queue unawares may have come in too: of those who are too many, the last go.
                if self.is_within(&permit).await.map_err(|failure| self.failed(failure))? {
                    drop(turn);
                    return Ok(permit);
                }
                drop(permit);
                continue;
            }
            if !patient {
                return Err(AcquireError::Busy { path: self.path.clone() });
            }
            tokio::select! {
                biased;
                reason = turn.lost() => return Err(self.failed(Failure::SessionOver(reason))),
                () = changed.any() => {}
            }
        }
    }

    fn failed(&self, failure: Failure) -> AcquireError {
        AcquireError::of(failure, &self.path)
    }

    /// Whether a permit is free, and what to watch if not.
    async fn look(&self, turn: &Guard) -> Result<(bool, Changed), Failure> {
        let epoch = turn.epoch();
        let (limit, limit_watcher) = self.limit(epoch).await?;
        let leases = &self.session.config().connect.absolute(self.permits.path());
        let listed = epoch.ask(|client| async move { client.list_and_watch_children(leases).await }).await;
        let (held, leases_watcher) = match listed {
            Ok((children, watcher)) => (count(&children), Some(watcher)),
            Err(Failure::Refused(zk::Error::NoNode)) => (0, None),
            Err(failure) => return Err(failure),
        };
        Ok((held < limit, Changed { limit: limit_watcher, leases: leases_watcher }))
    }

    async fn limit(&self, epoch: &Epoch) -> Result<(usize, zk::OneshotWatcher), Failure> {
        let path = &self.session.config().connect.absolute(&self.limit_path());
        loop {
            match epoch.ask(|client| async move { client.get_and_watch_data(path).await }).await {
                Ok((data, _, watcher)) => {
                    let limit = data.try_into().map_or(self.limit, u32::from_be_bytes);
                    return Ok((limit as usize, watcher));
                }
                Err(Failure::Refused(zk::Error::NoNode)) => {
                    let asked = epoch.ask(|client| async move { client.check_and_watch_stat(path).await });
                    if let (None, watcher) = asked.await? {
                        return Ok((self.limit as usize, watcher));
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether a permit is among the first so many as the limit allows.
    async fn is_within(&self, permit: &Guard) -> Result<bool, Failure> {
        let epoch = permit.epoch();
        let (limit, _) = self.limit(epoch).await?;
        let leases = &self.session.config().connect.absolute(self.permits.path());
        let children = match epoch.ask(|client| async move { client.list_children(leases).await }).await {
            // Somebody removed the directory, and the permit with it.
            Err(Failure::Refused(zk::Error::NoNode)) => return Ok(false),
            listed => listed?,
        };
        let own = permit.node();
        let Some((_, own)) = own.rsplit('/').next().and_then(parse) else { return Ok(false) };
        let sequences = children.iter().filter_map(|child| parse(child));
        Ok(sequences.filter(|(_, sequence)| own.wrapping_sub(*sequence) > 0).count() < limit)
    }
}

fn count(leases: &[String]) -> usize {
    leases.iter().filter(|lease| parse(lease).is_some()).count()
}

/// What can make a permit free.
struct Changed {
    limit: zk::OneshotWatcher,
    leases: Option<zk::OneshotWatcher>,
}

impl Changed {
    /// Resolves at the first change of either.
    async fn any(self) {
        let leases = async {
            match self.leases {
                Some(leases) => drop(leases.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.limit.changed() => {}
            () = leases => {}
        }
    }
}
