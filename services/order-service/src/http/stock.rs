//! `/stock`

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::json;

use super::{Shared, body, input, respond, subject::Subject};
use crate::{domain::Sku, place, problem::Problem};

/// Most SKUs of one page, and how many there are if none are asked for.
const PAGE_MAX: i64 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    limit: Option<i64>,
}

/// How one SKU is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    /// Under the read lock.
    #[serde(default)]
    consistent: bool,
}

fn look(request: &HttpRequest) -> Result<Look, Problem> {
    let look = web::Query::<Look>::from_query(request.query_string()).map_err(|error| {
        let message = format!("The query must be consistent=true or consistent=false: {error}.");
        Problem::new("invalid-request", message).with("field", "consistent")
    })?;
    Ok(look.into_inner())
}

pub(super) async fn list(shared: web::Data<Shared>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let wrong = |field: &str, message: String| Problem::new("invalid-request", message).with("field", field);
    let page = web::Query::<Page>::from_query(request.query_string())
        .map_err(|error| wrong("query", format!("The query must be after=<sku>&limit=<n>: {error}.")))?
        .into_inner();
    let after = page.after.filter(|after| !after.is_empty()).map(|after| Sku::parse(&after)).transpose();
    let after = after.map_err(|error| wrong("after", format!("after {error}.")))?;
    let limit = page.limit.unwrap_or(PAGE_MAX);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(wrong("limit", format!("limit must be a whole number from 1 to {PAGE_MAX}.")));
    }
    let found = place::read(&shared.service, body::arrived(&request), move |service, until| async move {
        service.store.stock_after(after.as_ref(), limit, until).await
    });
    let items = found.await.map_err(|failure| failure.problem())?;
    let full = i64::try_from(items.len()).is_ok_and(|length| length == limit);
    let next = items.last().filter(|_| full).map(|last| last.sku.clone());
    Ok(HttpResponse::Ok().json(json!({"items": items, "next": next})))
}

pub(super) async fn show(shared: web::Data<Shared>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let sku = input::sku(&request)?;
    let Look { consistent } = look(&request)?;
    let wanted = sku.clone();
    let found = place::read(&shared.service, body::arrived(&request), move |service, until| async move {
        if consistent {
            place::consistent_stock(&service, &wanted, until).await
        } else {
            Ok(service.store.stock(&wanted, until).await?)
        }
    });
    match found.await {
        Ok(Some(row)) => Ok(HttpResponse::Ok().json(row)),
        Ok(None) => {
            let problem = Problem::new("unknown-sku", format!("There is no SKU {sku}."));
            Err(problem.with("sku", sku.as_str()))
        }
        Err(failure) => Err(failure.problem()),
    }
}

pub(super) async fn set(
    shared: web::Data<Shared>,
    request: HttpRequest,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let service = &shared.service;
    let arrived = body::arrived(&request);
    let subject = Subject::of(&request);
    let parsed = async {
        let sku = input::sku(&request)?;
        let body = body::json(&request, &mut payload, arrived + service.lock_wait).await?;
        Ok((sku, input::on_hand(&body)?))
    };
    let (sku, on_hand) = parsed.await.map_err(|unread| subject.invalid(unread))?;
    let set = place::set_stock(service, arrived, sku, on_hand).await;
    set.map(respond::answer).map_err(|failure| subject.failed(&failure))
}

pub(super) async fn restock(
    shared: web::Data<Shared>,
    request: HttpRequest,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let service = &shared.service;
    let arrived = body::arrived(&request);
    let subject = Subject::of(&request);
    let parsed = async {
        let (sku, key) = (input::sku(&request)?, input::key(&request)?);
        let body = body::json(&request, &mut payload, arrived + service.lock_wait).await?;
        Ok((sku, key, input::quantity(&body)?))
    };
    let (sku, key, quantity) = parsed.await.map_err(|unread| subject.invalid(unread))?;
    let restocked = place::restock(service, arrived, sku, quantity, key).await;
    restocked.map(respond::answer).map_err(|failure| subject.failed(&failure))
}
