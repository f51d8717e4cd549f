//! `/orders`

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use super::{Shared, body, input, respond, subject::Subject};
use crate::{
    place,
    problem::Problem,
    store::{Line, Order},
};

pub(super) async fn place(
    shared: web::Data<Shared>,
    request: HttpRequest,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let service = &shared.service;
    let arrived = body::arrived(&request);
    let subject = Subject::of(&request);
    let parsed = async {
        let key = input::key(&request)?;
        let body = body::json(&request, &mut payload, arrived + service.lock_wait).await?;
        Ok((key, input::order(&body)?))
    };
    let (key, lines) = parsed.await.map_err(|unread| subject.invalid(unread))?;
    let placed = place::place_order(service, arrived, lines, key).await;
    placed.map(respond::answer).map_err(|failure| subject.failed(&failure))
}

pub(super) async fn show(shared: web::Data<Shared>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let id = input::order_id(&request)?;
    let found = place::read(&shared.service, body::arrived(&request), move |service, until| async move {
        service.store.order(id, until).await
    });
    match found.await {
        Ok(Some(order)) => Ok(HttpResponse::Ok().json(order_body(&order))),
        Ok(None) => Err(Problem::new("unknown-order", format!("There is no order {id}."))),
        Err(failure) => Err(failure.problem()),
    }
}

pub(super) async fn cancel(shared: web::Data<Shared>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let subject = Subject::of(&request);
    let id = input::order_id(&request).map_err(|problem| subject.invalid(problem.into()))?;
    let cancelled = place::cancel_order(&shared.service, body::arrived(&request), id).await;
    cancelled.map(respond::answer).map_err(|failure| subject.failed(&failure))
}

fn order_body(order: &Order) -> serde_json::Value {
    let line = |line: &Line| json!({"sku": line.sku, "quantity": line.quantity, "on_hand_after": line.on_hand_after});
    let text = |at: time::OffsetDateTime| at.format(&Rfc3339).ok();
    json!({
        "id": order.id,
        "status": order.status,
        "lines": order.lines.iter().map(line).collect::<Vec<_>>(),
        "instance": order.instance,
        "trace_id": order.trace_id,
        "created_at": text(order.created_at),
        "cancelled_at": order.cancelled.as_ref().and_then(|cancelled| text(cancelled.at)),
    })
}
