//! Setting and restocking, under the same lock and writer as orders.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::{Span, field::Empty};

use super::{
    Answer, Failure, Service,
    change::change,
    harness::{Asked, Job, submit},
    replies,
};
use crate::{
    domain::{Command, IdempotencyKey, OnHand, Quantity, Sku},
    lockers::{Access, Held, Label},
    store::{Decided, StockRow},
    telemetry,
};

/// Reads the stock of a SKU under its read lock: no change that was acknowledged before is missing, and none is under way
/// while it is read. In modes whose lock readers do not share it waits like a writer; in mode `none` it is a plain read.
///
/// # Cancel safety
/// The lock and the place in its queue are given up in the background.
pub async fn consistent_stock(
    service: &Service,
    sku: &Sku,
    until: Instant,
) -> Result<Option<StockRow>, Failure> {
    service.admitted(until).await?;
    let label = Label { traceparent: telemetry::traceparent(), text: "read".to_owned() };
    let held = service.locker.acquire(Access::Read, std::slice::from_ref(sku), until, &label).await?;
    let row = service.store.stock(sku, until).await;
    held.release(&service.metrics).await;
    Ok(row?)
}

/// Sets the stock of a SKU, and creates the SKU.
///
/// # Cancel safety
/// The change goes on when the future is dropped.
pub async fn set_stock(
    service: &Arc<Service>,
    arrived: Instant,
    sku: Sku,
    on_hand: OnHand,
) -> Result<Answer, Failure> {
    let span = tracing::info_span!(
        "stock.set",
        stock.sku = %sku,
        order.outcome = Empty,
        lock.mode = service.mode.name,
        lock.writer = service.writer.as_str(),
    );
    adjust(service, "set", arrived, span, Command::Set { sku, on_hand }, None).await
}

/// Adds units to a SKU that exists. Without a key a retry may add twice.
///
/// # Cancel safety
/// The change goes on when the future is dropped.
pub async fn restock(
    service: &Arc<Service>,
    arrived: Instant,
    sku: Sku,
    quantity: Quantity,
    key: Option<IdempotencyKey>,
) -> Result<Answer, Failure> {
    let span = tracing::info_span!(
        "stock.restock",
        stock.sku = %sku,
        order.outcome = Empty,
        lock.mode = service.mode.name,
        lock.writer = service.writer.as_str(),
    );
    adjust(service, "restock", arrived, span, Command::Restock { sku, quantity }, key).await
}

async fn adjust(
    service: &Arc<Service>,
    operation: &'static str,
    arrived: Instant,
    span: Span,
    command: Command,
    key: Option<IdempotencyKey>,
) -> Result<Answer, Failure> {
    let asked = Asked::with(key.as_ref());
    let use_case = |service: Arc<Service>, job: Job| async move {
        let reply = |decided: &Decided<'_>, held: &Held| match decided {
            // One SKU, one change.
            Decided::Applied { changes, .. } => replies::stocked(&service, &job.trace_id, &changes[0], held),
            Decided::Refused(refusal) => replies::refused(&command, refusal, held),
        };
        change(&service, &job, &command, key, &reply).await
    };
    submit(service, operation, arrived, asked, span, use_case).await
}
