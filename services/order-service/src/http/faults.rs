//! `/faults/…`: real faults on demand. The routes exist only if a token is configured, and each request must bring it.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;
use std::time::Duration;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::{Instant, timeout_at};

use super::{Faults, Shared, body, input};
use crate::problem::Problem;

const TOKEN: &str = "X-Fault-Token";

fn allowed<'a>(shared: &'a Shared, request: &HttpRequest) -> Result<&'a Faults, Problem> {
    let given = request.headers().get(TOKEN).map(actix_web::http::header::HeaderValue::as_bytes);
    let faults =
        shared.faults.as_ref().filter(|faults| given.is_some_and(|given| faults.token.matches(given)));
    faults.ok_or_else(|| Problem::new("forbidden", format!("{TOKEN} is missing or wrong.")))
}

/// Ends this replica's ZooKeeper session, at the server.
pub(super) async fn expire(shared: web::Data<Shared>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let session = allowed(&shared, &request)?.session.clone();
    let until = deadline(&shared, &request);
    // On the runtime of the session, which outlives this worker.
    let expired = shared.service.tasks.spawn(async move { session.expire().await });
    let failed =
        |reason: String| Problem::new("unavailable", format!("The session was not ended: {reason}."));
    match timeout_at(until, expired).await {
        Ok(Ok(Ok(session))) => {
            tracing::warn!(session = format!("{session:#x}"), "the session was ended on demand");
            let at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
            Ok(HttpResponse::Ok().json(json!({"session": format!("{session:#x}"), "expired_at": at})))
        }
        Ok(Ok(Err(error))) => Err(failed(error.to_string())),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("no reply before the deadline".to_owned())),
    }
}

/// Changes the slow part of orders.
pub(super) async fn work(
    shared: web::Data<Shared>,
    request: HttpRequest,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    allowed(&shared, &request)?;
    let body = body::json(&request, &mut payload, deadline(&shared, &request)).await?;
    let work_ms = input::work_ms(&body)?;
    shared.service.work.set(Duration::from_millis(work_ms));
    Ok(HttpResponse::Ok().json(json!({"work_ms": work_ms})))
}

fn deadline(shared: &Shared, request: &HttpRequest) -> Instant {
    body::arrived(request) + shared.service.lock_wait
}
