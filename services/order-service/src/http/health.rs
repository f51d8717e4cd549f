//! `/healthz`, `/readyz`, `/metrics`: for whoever watches the service.

use actix_web::{HttpResponse, web};
use serde_json::json;

use super::{Shared, respond};
use crate::{problem::Problem, telemetry};

/// 200 for as long as the process lives.
pub(super) async fn alive(shared: web::Data<Shared>) -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "alive", "instance": shared.service.instance}))
}

/// 200 if a request would be served, else 503; says why.
pub(super) async fn ready(shared: web::Data<Shared>) -> HttpResponse {
    let service = &shared.service;
    let (ready, mut report) = service.health.report();
    report["instance"] = service.instance.clone().into();
    report["mode"] = service.mode.name.into();
    report["writer"] = service.writer.as_str().into();
    if ready { HttpResponse::Ok().json(report) } else { HttpResponse::ServiceUnavailable().json(report) }
}

pub(super) async fn metrics(shared: web::Data<Shared>) -> HttpResponse {
    match telemetry::encode(&shared.registry) {
        Ok(text) => HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(text),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be encoded");
            respond::problem(&Problem::internal())
        }
    }
}
