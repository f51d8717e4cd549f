//! Distributed locks on ZooKeeper that give a fencing token, tell when they are lost, show whom they waited for,
//! and leave nothing behind when they are cancelled.
//!
//! ```no_run
//! use std::time::Duration;
//! use zk_locks::{Acquire, Recipe, Session, SessionConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = SessionConfig::new("zoo1:2181,zoo2:2181,zoo3:2181/shop")?.with_instance("order-1");
//! let session = Session::start(config); // one per process, heals by itself
//! let lock = session.mutex(Recipe::Fair, "/locks/sku-1")?;
//!
//! let guard = lock.acquire(Acquire::within(Duration::from_secs(2))).await?;
//! tokio::select! {
//!     biased;
//!     written = write_with_token(guard.token()) => written?, // the resource refuses a lower token
//!     reason = guard.lost() => return Err(reason.into()),    // nobody else can be inside yet
//! }
//! guard.release().await?; // after the write was acknowledged
//! # Ok(()) }
//! # async fn write_with_token(_: i64) -> std::io::Result<()> { Ok(()) }
//! ```
//!
//! # What it promises
//! - At any time at most one *live* holder: on a holder's own clock [`Guard::lost`] resolves before the server
//!   can have given the lock to another.
//! - Tokens of one lock rise from holder to holder.
//! - `acquire` ends by its deadline with a guard, or with an error and no node.
//!
//! # What it does not promise
//! No lock can stop a holder that is paused, or that does not look: it goes on writing when it wakes. Let the
//! resource compare tokens ([`Guard::token`]) *in the statement that reads what the write depends on*.
//!
//! # Where to look
//! [`Session`], [`Lock`], [`Guard`] are what a service uses; [`Recipe`] and [`RwRecipe`] tell the znodes; [`turn`] is the pure
//! core; [`Inspector`] shows who holds and who waits; [`Observer`] feeds metrics and trace links.

mod acquire;
mod claim;
mod clock;
mod config;
mod directory;
mod error;
#[cfg(feature = "faults")]
mod faults;
mod guard;
mod inspect;
mod locate;
mod lock;
mod multi;
mod node;
mod observer;
mod owner;
mod path;
mod recipe;
mod removal;
mod rw;
mod semaphore;
mod session;
mod stake;
mod statistics;
mod story;
pub mod turn;

pub use config::{DEFAULT_SESSION_TIMEOUT, SessionConfig};
pub use error::{
    AcquireError, CloseError, ConfigError, DowngradeError, Lost, NotConnected, OperationError, PathError,
    ReleaseError,
};
pub use guard::Guard;
pub use inspect::{Inspector, LockEntry, LockView};
pub use lock::{Acquire, Lock};
pub use multi::{Acquiring, Lockable, MultiGuard, MultiLock};
pub use node::{Access, NodeData, Revocation};
pub use observer::{Attempt, Held, Observer, Queued};
pub use owner::Owner;
pub use recipe::{Recipe, Role, RwRecipe, UnknownRecipe};
pub use rw::RwLock;
pub use semaphore::Semaphore;
pub use session::{Member, Session, SessionInfo, SessionState};
pub use statistics::{BUCKETS_MS, Histogram, RoleStatistics, Statistics};
