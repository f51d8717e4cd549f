//! The bodies of replies, with the names that other programs build on.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Service;
use crate::{
    domain::{Change, Command, Kind, OnHand, Refusal},
    lockers::{Held, Hold},
    problem::{Problem, Standing},
    store::{Line, Order, Reply},
};

#[derive(Serialize)]
struct OrderBody<'a> {
    id: Uuid,
    status: &'static str,
    lines: Vec<LineBody<'a>>,
    instance: &'a str,
    trace_id: &'a str,
    lock: LockBody,
}

#[derive(Serialize)]
struct LineBody<'a> {
    sku: &'a str,
    quantity: i64,
    on_hand_after: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<i64>,
}

/// How the lock was had. `hold_ms` ends where the reply is made, right before the commit.
#[derive(Serialize)]
struct LockBody {
    mode: &'static str,
    writer: &'static str,
    token: Option<i64>,
    position: usize,
    wait_ms: f64,
    hold_ms: f64,
}

#[derive(Serialize)]
struct StockBody<'a> {
    sku: &'a str,
    on_hand: i64,
    instance: &'a str,
    trace_id: &'a str,
    lock: LockBody,
}

#[derive(Serialize)]
struct CancelledBody<'a> {
    id: Uuid,
    status: &'static str,
    #[serde(with = "time::serde::rfc3339")]
    cancelled_at: OffsetDateTime,
    lines: Vec<LineBody<'a>>,
    instance: &'a str,
}

fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn lock(service: &Service, held: &Held) -> LockBody {
    LockBody {
        mode: service.mode.name,
        writer: service.writer.as_str(),
        token: held.token(),
        position: held.position(),
        wait_ms: millis(held.waited()),
        hold_ms: millis(held.held()),
    }
}

fn json(status: u16, order_id: Option<Uuid>, body: &impl Serialize) -> Reply {
    let body = serde_json::to_string(body).expect("a body of plain fields can be written");
    Reply { status, body, order_id }
}

/// An order that is about to be committed.
pub(super) fn accepted(
    service: &Service,
    id: Uuid,
    trace_id: &str,
    changes: &[Change],
    held: &Held,
) -> Reply {
    let line = |change| line_of(change, held);
    let lines = changes.iter().map(line).collect();
    let lock = lock(service, held);
    let body = OrderBody { id, status: "accepted", lines, instance: &service.instance, trace_id, lock };
    json(201, Some(id), &body)
}

fn line_of<'a>(change: &'a Change, held: &Held) -> LineBody<'a> {
    LineBody {
        sku: change.sku.as_str(),
        quantity: change.delta.abs(),
        on_hand_after: change.after,
        token: held.on(&change.sku).map(Hold::token),
    }
}

/// A stock that is about to be committed.
pub(super) fn stocked(service: &Service, trace_id: &str, change: &Change, held: &Held) -> Reply {
    let (sku, on_hand) = (change.sku.as_str(), change.after);
    let lock = lock(service, held);
    json(200, None, &StockBody { sku, on_hand, instance: &service.instance, trace_id, lock })
}

/// A cancellation that is about to be committed. Says the same as [`cancelled`] says of it later.
pub(super) fn cancelling(service: &Service, id: Uuid, at: OffsetDateTime, changes: &[Change]) -> Reply {
    let line = |change: &Change| Line {
        sku: change.sku.to_string(),
        quantity: change.delta,
        on_hand_after: change.after,
    };
    let lines: Vec<Line> = changes.iter().map(line).collect();
    cancelled_body(id, at, &lines, &service.instance)
}

/// An order that was cancelled before; `None`: it was not.
pub(super) fn cancelled(order: &Order) -> Option<Reply> {
    let cancelled = order.cancelled.as_ref()?;
    Some(cancelled_body(order.id, cancelled.at, &cancelled.lines, &cancelled.instance))
}

fn cancelled_body(id: Uuid, cancelled_at: OffsetDateTime, lines: &[Line], instance: &str) -> Reply {
    let line = |line| {
        let &Line { ref sku, quantity, on_hand_after } = line;
        LineBody { sku, quantity, on_hand_after, token: None }
    };
    let lines = lines.iter().map(line).collect();
    json(200, Some(id), &CancelledBody { id, status: "cancelled", cancelled_at, lines, instance })
}

/// A decision against.
pub(super) fn refused(command: &Command, refusal: &Refusal, held: &Held) -> Reply {
    let problem = Problem::new(refusal_code(refusal), refusal_detail(refusal));
    let problem = match refusal {
        Refusal::UnknownSku { sku } | Refusal::StockLimit { sku } => problem.with("sku", sku.as_str()),
        Refusal::OutOfStock { sku, requested, available } => problem
            .with("sku", sku.as_str())
            .with("requested", *requested)
            .with("available", *available)
            .with("token", held.on(sku).map(Hold::token)),
    };
    let problem = match command.kind() {
        Kind::Order => problem.order(Standing::NotPlaced),
        Kind::Cancel | Kind::Restock | Kind::Set => problem.change(Standing::NotPlaced),
    };
    Reply { status: problem.status, body: problem.to_json(), order_id: None }
}

/// The stable name of a refusal.
pub(super) fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::UnknownSku { .. } => "unknown-sku",
        Refusal::OutOfStock { .. } => "out-of-stock",
        Refusal::StockLimit { .. } => "stock-limit",
    }
}

fn refusal_detail(refusal: &Refusal) -> String {
    match refusal {
        Refusal::UnknownSku { sku } => format!("There is no SKU {sku}."),
        Refusal::OutOfStock { sku, requested, available } => {
            format!("{requested} of {sku} were asked for, {available} are left.")
        }
        Refusal::StockLimit { sku } => format!("{sku} may hold {} at most.", OnHand::MAX),
    }
}
