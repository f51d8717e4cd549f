//! Reading a body: bounded in size and time, and then JSON.

use actix_web::{HttpMessage, HttpRequest, http::header, web};
use futures::StreamExt;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{admission::Arrived, unique::Unique};
use crate::problem::Problem;

/// Largest body, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Why there is nothing to work with.
pub(super) enum Unread {
    /// It did not come whole: what it asks for is not known.
    Partly(Problem),
    /// It is not what it should be.
    Wrong(Problem),
}

impl From<Problem> for Unread {
    fn from(problem: Problem) -> Self {
        Self::Wrong(problem)
    }
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        let (Unread::Partly(problem) | Unread::Wrong(problem)) = unread;
        problem
    }
}

/// When the request arrived.
pub(super) fn arrived(request: &HttpRequest) -> Instant {
    request.extensions().get::<Arrived>().map_or_else(Instant::now, |arrived| arrived.0)
}

/// Reads the whole body and parses it as one JSON value.
pub(super) async fn json(
    request: &HttpRequest,
    payload: &mut web::Payload,
    until: Instant,
) -> Result<Value, Unread> {
    let too_large =
        || Unread::Wrong(Problem::new("body-too-large", format!("At most {BODY_BYTES_MAX} bytes are read.")));
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > BODY_BYTES_MAX) {
        return Err(too_large());
    }
    let read = async {
        let mut body = web::BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let broken = |_| Unread::Partly(Problem::new("malformed-request", "The body broke off."));
            let chunk = chunk.map_err(broken)?;
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    let late = Problem::new("request-timeout", "The body did not arrive before the deadline.");
    let body = timeout_at(until, read).await.map_err(|_| Unread::Partly(late))??;
    let parsed = serde_json::from_slice(&body).map(|Unique(value)| value);
    parsed.map_err(|error| {
        // Line and column, not the text around them.
        let detail = format!("The body is not JSON: {error}.");
        Problem::new("malformed-request", detail).with("field", "body").into()
    })
}
