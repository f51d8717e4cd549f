//! From answers, failures and problems to HTTP.

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};

use crate::{
    place::Answer,
    problem::{MEDIA_TYPE, Problem, RETRY_AFTER_SECONDS},
};

/// Says that this is the reply to an earlier request with the same key.
const REPLAYED: &str = "Idempotency-Replayed";

fn builder(status: u16) -> HttpResponseBuilder {
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}

pub(super) fn problem(problem: &Problem) -> HttpResponse {
    let mut response = builder(problem.status);
    if problem.is_passing() {
        response.insert_header((header::RETRY_AFTER, RETRY_AFTER_SECONDS));
    }
    response.content_type(MEDIA_TYPE).body(problem.to_json())
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        problem(self)
    }
}

/// A reply that was decided.
pub(super) fn answer(answer: Answer) -> HttpResponse {
    let mut response = builder(answer.reply.status);
    if answer.replayed {
        response.insert_header((REPLAYED, "true"));
    }
    if let (Some(id), 201) = (answer.reply.order_id, answer.reply.status) {
        response.insert_header((header::LOCATION, format!("/orders/{id}")));
    }
    let media_type = if answer.reply.status < 400 { "application/json" } else { MEDIA_TYPE };
    response.content_type(media_type).body(answer.reply.body)
}
