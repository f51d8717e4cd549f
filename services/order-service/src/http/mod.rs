//! The interface: routes, JSON in, JSON or `application/problem+json` out.
//!
//! Promises that every reply of the service, errors of routing and of bodies included, has one of these two shapes. What is
//! no HTTP, or has headers beyond the web server's limits, is refused by the web server, without a body.

mod admission;
mod body;
mod faults;
mod health;
mod input;
mod orders;
mod respond;
mod stock;
mod subject;
mod unique;

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse, Resource,
    dev::HttpServiceFactory,
    http::header,
    middleware::from_fn,
    web::{self, ServiceConfig},
};
use opentelemetry_instrumentation_actix_web::RequestTracing;
use prometheus::Registry;

pub use admission::Admission;
pub use body::BODY_BYTES_MAX;

use crate::{config::Secret, place::Service, problem::Problem};

/// What the handlers share.
pub struct Shared {
    /// The use cases.
    pub service: Arc<Service>,
    /// Who is let in.
    pub admission: Arc<Admission>,
    /// What `/metrics` shows.
    pub registry: Registry,
    /// Switches the fault endpoints on.
    pub faults: Option<Faults>,
}

/// What the fault endpoints need.
pub struct Faults {
    /// Who may use them.
    pub token: Secret,
    /// The session that can be expired.
    pub session: zk_locks::Session,
}

/// Adds all routes.
pub fn configure(shared: Arc<Shared>) -> impl FnOnce(&mut ServiceConfig) {
    move |routes| {
        let faults = shared.faults.is_some();
        routes
            .app_data(web::Data::from(shared))
            // Asked every second by whoever watches: neither counted nor traced.
            .service(resource("/healthz", "GET, HEAD", |r| r.get(health::alive)))
            .service(resource("/readyz", "GET, HEAD", |r| r.get(health::ready)))
            .service(resource("/metrics", "GET, HEAD", |r| r.get(health::metrics)))
            .service(api(faults));
    }
}

fn api(faults: bool) -> impl HttpServiceFactory {
    let mut api = web::scope("")
        .service(resource("/orders", "POST", |r| r.post(orders::place)))
        .service(resource("/orders/{id}", "GET, HEAD", |r| r.get(orders::show)))
        .service(resource("/orders/{id}/cancel", "POST", |r| r.post(orders::cancel)))
        .service(resource("/stock", "GET, HEAD", |r| r.get(stock::list)))
        .service(resource("/stock/{sku}", "GET, HEAD, PUT", |r| r.get(stock::show).put(stock::set)))
        .service(resource("/stock/{sku}/restock", "POST", |r| r.post(stock::restock)));
    if faults {
        api = api
            .service(resource("/faults/session/expire", "POST", |r| r.post(faults::expire)))
            .service(resource("/faults/work", "PUT", |r| r.put(faults::work)));
    }
    api.default_service(web::to(nothing_here))
        .wrap(from_fn(admission::admit))
        // Outermost, so that refusals have a span and a trace id too.
        .wrap(RequestTracing::new())
}

/// The methods of one address.
struct Methods(Resource);

impl Methods {
    fn get<F, A>(self, handler: F) -> Self
    where
        F: actix_web::Handler<A>,
        A: actix_web::FromRequest + 'static,
        F::Output: actix_web::Responder + 'static,
    {
        // The web server leaves the body of a HEAD away.
        Self(self.0.route(web::get().to(handler.clone())).route(web::head().to(handler)))
    }

    fn post<F, A>(self, handler: F) -> Self
    where
        F: actix_web::Handler<A>,
        A: actix_web::FromRequest + 'static,
        F::Output: actix_web::Responder + 'static,
    {
        Self(self.0.route(web::post().to(handler)))
    }

    fn put<F, A>(self, handler: F) -> Self
    where
        F: actix_web::Handler<A>,
        A: actix_web::FromRequest + 'static,
        F::Output: actix_web::Responder + 'static,
    {
        Self(self.0.route(web::put().to(handler)))
    }
}

fn resource(path: &'static str, allowed: &'static str, methods: impl FnOnce(Methods) -> Methods) -> Resource {
    let other = move |request: HttpRequest| async move {
        let detail = format!("{} is not among {allowed}.", request.method());
        let mut reply = respond::problem(&Problem::new("method-not-allowed", detail));
        reply.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static(allowed));
        reply
    };
    methods(Methods(web::resource(path))).0.default_service(web::to(other))
}

async fn nothing_here(request: HttpRequest) -> HttpResponse {
    respond::problem(&Problem::new("not-found", format!("There is nothing at {}.", request.path())))
}
