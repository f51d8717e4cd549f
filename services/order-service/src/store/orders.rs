//! Orders and their lines.

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Store, StoreError, connection,
    connection::Transaction,
    statement::{Statement, statement},
};
use crate::domain::{Change, Lines, Sku};

const ORDER: Statement = statement!(
    "SELECT",
    "orders",
    "SELECT status, instance, trace_id, created_at, cancelled_at FROM orders WHERE id = $1"
);

const LINES: Statement = statement!(
    "SELECT",
    "order_lines",
    "SELECT l.sku, l.quantity, l.on_hand_after, r.on_hand_after AS returned_after, r.instance AS returned_by
     FROM order_lines l
     LEFT JOIN ledger r ON r.order_id = l.order_id AND r.sku = l.sku AND r.kind = 'cancel'
     WHERE l.order_id = $1 ORDER BY l.sku COLLATE \"C\""
);

const INSERT: Statement = statement!(
    "INSERT",
    "orders",
    "INSERT INTO orders (id, status, instance, trace_id) VALUES ($1, 'accepted', $2, $3)"
);

const INSERT_LINES: Statement = statement!(
    "INSERT",
    "order_lines",
    "INSERT INTO order_lines (order_id, sku, quantity, on_hand_after)
     SELECT $1, l.* FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS l"
);

const CANCEL: Statement = statement!(
    "UPDATE",
    "orders",
    "UPDATE orders SET status = 'cancelled', cancelled_at = clock_timestamp()
     WHERE id = $1 AND status = 'accepted' RETURNING cancelled_at"
);

/// An order as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub id: Uuid,
    /// `accepted` or `cancelled`.
    pub status: String,
    /// The replica that accepted it.
    pub instance: String,
    /// The trace of the request that placed it.
    pub trace_id: String,
    /// When it was placed.
    pub created_at: OffsetDateTime,
    /// In SKU order.
    pub lines: Vec<Line>,
    /// How it was cancelled, if it was.
    pub cancelled: Option<Cancelled>,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which SKU.
    pub sku: String,
    /// How many.
    pub quantity: i64,
    /// The stock after the change.
    pub on_hand_after: i64,
}

/// What a cancellation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// When.
    pub at: OffsetDateTime,
    /// The replica that cancelled it.
    pub instance: String,
    /// What came back, in SKU order.
    pub lines: Vec<Line>,
}

impl Order {
    /// The lines as a command takes them.
    pub fn command_lines(&self) -> Lines {
        let line = |line: &Line| Sku::parse(&line.sku).map(|sku| (sku, line.quantity));
        Lines::stored(self.lines.iter().filter_map(|stored| line(stored).ok()))
    }
}

#[derive(sqlx::FromRow)]
struct OrderRow {
    status: String,
    instance: String,
    trace_id: String,
    created_at: OffsetDateTime,
    cancelled_at: Option<OffsetDateTime>,
}

#[derive(sqlx::FromRow)]
struct LineRow {
    sku: String,
    quantity: i64,
    on_hand_after: i64,
    returned_after: Option<i64>,
    returned_by: Option<String>,
}

impl Store {
    /// An order with its lines and what its cancellation returned.
    pub async fn order(&self, id: Uuid, until: Instant) -> Result<Option<Order>, StoreError> {
        let found = connection::read(&self.pool, until, "read the order", async |lease| {
            let order: Option<OrderRow> = lease
                .run(&ORDER, async |connection| {
                    sqlx::query_as(ORDER.text).bind(id).fetch_optional(connection).await
                })
                .await?;
            let Some(order) = order else { return Ok(None) };
            let lines: Vec<LineRow> = lease
                .run(&LINES, async |connection| {
                    sqlx::query_as(LINES.text).bind(id).fetch_all(connection).await
                })
                .await?;
            Ok(Some((order, lines)))
        })
        .await?;
        Ok(found.map(|(order, lines)| assemble(id, order, &lines)))
    }
}

fn assemble(id: Uuid, order: OrderRow, lines: &[LineRow]) -> Order {
    let taken = |line: &LineRow| Line {
        sku: line.sku.clone(),
        quantity: line.quantity,
        on_hand_after: line.on_hand_after,
    };
    let returned = |line: &LineRow| Some(Line { on_hand_after: line.returned_after?, ..taken(line) });
    let cancelled = order.cancelled_at.map(|at| Cancelled {
        at,
        instance: lines.iter().find_map(|line| line.returned_by.clone()).unwrap_or_default(),
        lines: lines.iter().filter_map(returned).collect(),
    });
    Order {
        id,
        status: order.status,
        instance: order.instance,
        trace_id: order.trace_id,
        created_at: order.created_at,
        lines: lines.iter().map(taken).collect(),
        cancelled,
    }
}

/// Writes an accepted order.
pub(super) async fn insert(
    transaction: &mut Transaction,
    id: Uuid,
    changes: &[Change],
    instance: &str,
    trace_id: &str,
) -> Result<(), StoreError> {
    let query = sqlx::query(INSERT.text).bind(id).bind(instance).bind(trace_id);
    transaction
        .run(&INSERT, async |connection| query.execute(connection).await)
        .await
        .map_err(|error| StoreError::from_sqlx("write the order", error))?;
    let skus: Vec<&str> = changes.iter().map(|change| change.sku.as_str()).collect();
    let quantities: Vec<i64> = changes.iter().map(|change| -change.delta).collect();
    let after: Vec<i64> = changes.iter().map(|change| change.after).collect();
    let query = sqlx::query(INSERT_LINES.text).bind(id).bind(skus).bind(quantities).bind(after);
    transaction
        .run(&INSERT_LINES, async |connection| query.execute(connection).await)
        .await
        .map_err(|error| StoreError::from_sqlx("write the lines", error))?;
    Ok(())
}

/// Marks an accepted order as cancelled. `None`: somebody else did.
pub(super) async fn cancel(
    transaction: &mut Transaction,
    id: Uuid,
) -> Result<Option<OffsetDateTime>, StoreError> {
    transaction
        .run(&CANCEL, async |connection| {
            sqlx::query_scalar(CANCEL.text).bind(id).fetch_optional(connection).await
        })
        .await
        .map_err(|error| StoreError::from_sqlx("cancel the order", error))
}
