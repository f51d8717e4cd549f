//! The transaction of a change, for both writers: look, decide, keep the reply, write, pass the gate, commit.
//!
//! Promises: an `Err` other than `Unknown` means that nothing was written and nothing will be. The writers differ only in
//! where the stock comes from: `fenced` claims it here, `plain` brings what it looked at before its work.

use time::OffsetDateTime;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{
    Entry, Gate, Kept, Store, StoreError, connection::Transaction, fenced, idempotency, ledger,
    ledger::Receipt, orders, stock,
};
use crate::domain::{Before, Change, Command, Decision, IdempotencyKey, Keyed, Kind, Refusal, Sku};

/// A reply as it is sent, and kept under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: String,
    /// The order it is about, if it was placed.
    pub order_id: Option<Uuid>,
}

/// What a reply is made of.
#[derive(Debug)]
pub enum Decided<'a> {
    /// These changes are about to be committed.
    Applied {
        /// In SKU order.
        changes: &'a [Change],
        /// For a cancellation.
        cancelled_at: Option<OffsetDateTime>,
    },
    /// Nothing is changed.
    Refused(&'a Refusal),
}

/// A change to be written.
pub struct Writing<'a> {
    /// What was asked for.
    pub command: &'a Command,
    /// The client's key.
    pub keyed: Option<&'a Keyed>,
    /// The locks, one per SKU of the command.
    pub entries: &'a [Entry],
    /// What the plain writer looked at; `None`: the fenced writer claims the rows.
    pub looked: Option<Vec<Before>>,
    /// Of the request.
    pub trace_id: &'a str,
    /// Makes the reply; it must not depend on anything that comes later.
    pub reply: &'a (dyn Fn(&Decided<'_>) -> Reply + Sync),
    /// For everything before the commit.
    pub until: Instant,
    /// For the commit and the search for its outcome.
    pub settle_until: Instant,
}

/// How it ended.
#[derive(Debug)]
pub enum Written {
    /// Committed.
    Applied {
        /// What is to be sent.
        reply: Reply,
        /// What was changed.
        changes: Vec<Change>,
    },
    /// Decided against; nothing was changed.
    Refused {
        /// What is to be sent.
        reply: Reply,
        /// Why.
        refusal: Refusal,
    },
    /// Another request with the same key was faster; nothing was changed here.
    KeyTaken(Kept),
    /// Another request cancelled the order; nothing was changed here.
    AlreadyCancelled,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A later holder has claimed the row.
    #[error("token {token} for {sku} is behind the fence {fence}")]
    FencedOut {
        /// Which SKU.
        sku: Sku,
        /// The token that was refused.
        token: i64,
        /// The token the row had seen.
        fence: i64,
    },
    /// The request was given up before the commit.
    #[error("the request was given up before the commit")]
    GivenUp,
    /// A commit was sent and its outcome could not be found out.
    #[error("the commit got no reply and its outcome could not be found out in time")]
    Unknown,
    /// A statement failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the transaction has come to before its end.
enum Prepared<'a> {
    Commit { reply: Reply, changes: Vec<Change>, receipt: Receipt },
    CommitRefusal { reply: Reply, refusal: Refusal },
    RollBack(Written),
    KeyTaken(&'a IdempotencyKey),
}

impl Store {
    /// Writes a change, all of it or nothing.
    ///
    /// # Cancel safety
    /// Before the gate was passed, dropping the future rolls back. After that the outcome is open: run it where nothing
    /// drops it.
    pub async fn write(&self, mut writing: Writing<'_>, gate: &Gate) -> Result<Written, WriteError> {
        let (until, settle_until) = (writing.until, writing.settle_until);
        let prepared = timeout_at(until, self.prepare(&mut writing)).await;
        let (transaction, prepared) = prepared.map_err(|_| StoreError::timed_out("write the change"))??;
        match prepared {
            Prepared::Commit { reply, changes, receipt } => {
                if !gate.pass() {
                    self.roll_back(transaction, until).await;
                    return Err(WriteError::GivenUp);
                }
                self.commit(transaction, &receipt, settle_until).await?;
                Ok(Written::Applied { reply, changes })
            }
            Prepared::CommitRefusal { reply, refusal } => {
                // Only the record of a refusal is at stake: whatever becomes of it, nothing was placed.
                match timeout_at(until, transaction.commit()).await {
                    Ok(Ok(())) => Ok(Written::Refused { reply, refusal }),
                    Ok(Err(error)) => Err(StoreError::from_sqlx("keep the reply", error).into()),
                    Err(_) => Err(StoreError::timed_out("keep the reply").into()),
                }
            }
            Prepared::RollBack(written) => {
                self.roll_back(transaction, until).await;
                Ok(written)
            }
            Prepared::KeyTaken(key) => {
                self.roll_back(transaction, until).await;
                match self.kept(key, until).await {
                    Ok(Some(kept)) => Ok(Written::KeyTaken(kept)),
                    // Somebody decided under this key, and what cannot be read.
                    Ok(None) | Err(_) => Err(WriteError::Unknown),
                }
            }
        }
    }

    async fn prepare<'a>(
        &self,
        writing: &mut Writing<'a>,
    ) -> Result<(Transaction, Prepared<'a>), WriteError> {
        let mut transaction = Transaction::begin(&self.pool, writing.until).await?;
        let command = writing.command;
        let before = match writing.looked.take() {
            Some(looked) => looked,
            None => match fenced::claim(&mut transaction, command, writing.entries).await {
                Ok(before) => before,
                Err(error) => {
                    transaction.roll_back().await;
                    return Err(error);
                }
            },
        };
        let prepared = match command.decide(&before) {
            Decision::Refuse(refusal) => refuse(&mut transaction, writing, refusal).await?,
            Decision::Apply(changes) => self.apply(&mut transaction, writing, changes).await?,
        };
        Ok((transaction, prepared))
    }

    async fn apply<'a>(
        &self,
        transaction: &mut Transaction,
        writing: &Writing<'a>,
        changes: Vec<Change>,
    ) -> Result<Prepared<'a>, WriteError> {
        let command = writing.command;
        let mut cancelled_at = None;
        match command {
            Command::Order { id, .. } => {
                orders::insert(transaction, *id, &changes, &self.instance, writing.trace_id).await?;
            }
            Command::Cancel { id, .. } => {
                cancelled_at = orders::cancel(transaction, *id).await?;
                if cancelled_at.is_none() {
                    return Ok(Prepared::RollBack(Written::AlreadyCancelled));
                }
            }
            Command::Restock { .. } | Command::Set { .. } => {}
        }
        let reply = (writing.reply)(&Decided::Applied { changes: &changes, cancelled_at });
        if let Some(keyed) = writing.keyed
            && !idempotency::keep(transaction, keyed, &reply, writing.until).await?
        {
            return Ok(Prepared::KeyTaken(&keyed.key));
        }
        stock::write(transaction, &changes, command.creates()).await?;
        let receipt = ledger::insert(transaction, command, &changes, writing.entries, &self.instance).await?;
        Ok(Prepared::Commit { reply, changes, receipt })
    }

    async fn commit(
        &self,
        transaction: Transaction,
        receipt: &Receipt,
        settle_until: Instant,
    ) -> Result<(), WriteError> {
        // Half of the time for the reply, the other half to ask for the outcome on another connection.
        let now = Instant::now();
        let reply_until = now + settle_until.saturating_duration_since(now) / 2;
        match timeout_at(reply_until, transaction.commit()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => tracing::warn!(%error, "a commit failed; asking for its outcome"),
            Err(_) => tracing::warn!("a commit got no reply; asking for its outcome"),
        }
        match self.settle(receipt, settle_until).await {
            Some(true) => Ok(()),
            Some(false) => Err(StoreError::Unavailable {
                operation: "commit",
                reason: "the transaction was rolled back".to_owned(),
            }
            .into()),
            None => Err(WriteError::Unknown),
        }
    }

    async fn roll_back(&self, transaction: Transaction, until: Instant) {
        // Out of time: the connection closes with the dropped transaction, and the server rolls back.
        timeout_at(until, transaction.roll_back()).await.ok();
    }
}

async fn refuse<'a>(
    transaction: &mut Transaction,
    writing: &Writing<'a>,
    refusal: Refusal,
) -> Result<Prepared<'a>, WriteError> {
    let reply = (writing.reply)(&Decided::Refused(&refusal));
    let decided = writing.command.kind() == Kind::Order && matches!(refusal, Refusal::OutOfStock { .. });
    match writing.keyed {
        Some(keyed) if decided => {
            if idempotency::keep(transaction, keyed, &reply, writing.until).await? {
                Ok(Prepared::CommitRefusal { reply, refusal })
            } else {
                Ok(Prepared::KeyTaken(&keyed.key))
            }
        }
        _ => Ok(Prepared::RollBack(Written::Refused { reply, refusal })),
    }
}
