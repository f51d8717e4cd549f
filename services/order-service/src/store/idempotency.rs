//! Decided replies, kept under the client's key and sent again byte for byte.

use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{
    Reply, Store, StoreError, WriteError, connection,
    connection::Transaction,
    statement::{Statement, statement},
};
use crate::domain::{IdempotencyKey, Keyed, RequestHash};

const LOOK_UP: Statement = statement!(
    "SELECT",
    "idempotency",
    "SELECT request_hash, status, body::text AS body, order_id FROM idempotency WHERE key = $1"
);

const KEEP: Statement = statement!(
    "INSERT",
    "idempotency",
    "INSERT INTO idempotency (key, request_hash, status, body, order_id) VALUES ($1, $2, $3, $4::text::json, $5)
     ON CONFLICT (key) DO NOTHING"
);

/// SQLSTATE of a `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// A decided reply.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Kept {
    request_hash: Vec<u8>,
    status: i16,
    body: String,
    order_id: Option<Uuid>,
}

impl Kept {
    /// The reply, if this is the request it was given to; `None`: the key was used for another request.
    pub fn reply_to(self, hash: &RequestHash) -> Option<Reply> {
        (self.request_hash == hash.as_bytes()).then(|| Reply {
            status: u16::try_from(self.status).unwrap_or(500),
            body: self.body,
            order_id: self.order_id,
        })
    }
}

impl Store {
    /// The reply kept under a key.
    pub async fn kept(&self, key: &IdempotencyKey, until: Instant) -> Result<Option<Kept>, StoreError> {
        connection::read(&self.pool, until, "look the key up", async |lease| {
            lease
                .run(&LOOK_UP, async |connection| {
                    sqlx::query_as(LOOK_UP.text).bind(key.as_str()).fetch_optional(connection).await
                })
                .await
        })
        .await
    }
}

/// Keeps a reply. `false`: another request with the key was faster. Waits for an open transaction of such a request;
/// if that does not end within `lock_timeout` or until the deadline, what becomes of the key is unknown.
pub(super) async fn keep(
    transaction: &mut Transaction,
    keyed: &Keyed,
    reply: &Reply,
    until: Instant,
) -> Result<bool, WriteError> {
    let query = sqlx::query(KEEP.text)
        .bind(keyed.key.as_str())
        .bind(keyed.hash.as_bytes())
        .bind(i16::try_from(reply.status).expect("a status has three digits"))
        .bind(&reply.body)
        .bind(reply.order_id);
    let insert = transaction.run(&KEEP, async |connection| query.execute(connection).await);
    match timeout_at(until, insert).await.map_err(|_| WriteError::Unknown)? {
        Ok(kept) => Ok(kept.rows_affected() == 1),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            Err(WriteError::Unknown)
        }
        Err(error) => Err(StoreError::from_sqlx("keep the reply", error).into()),
    }
}
