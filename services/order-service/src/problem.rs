//! `application/problem+json` (RFC 9457): the one shape of every error reply.
//!
//! Promises `type`, `title`, `status`, `detail`, `code` and `trace_id`, and that a bug reveals nothing.

use std::fmt;

use serde_json::{Map, Value};

use crate::telemetry;

/// Media type of an error reply.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Seconds after which a refused request may be sent again.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// What became of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was changed by this request, and nothing will be.
    NotPlaced,
    /// Whether it was changed is not known; the same key sent again settles it.
    Unknown,
}

/// An error reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// A stable name for programs.
    pub code: &'static str,
    title: &'static str,
    detail: String,
    members: Map<String, Value>,
}

/// Code, status and title of every problem there is.
const CODES: &[(&str, u16, &str)] = &[
    ("malformed-request", 400, "The request cannot be read"),
    ("forbidden", 403, "The token is missing or wrong"),
    ("not-found", 404, "There is nothing at this address"),
    ("unknown-order", 404, "There is no such order"),
    ("unknown-sku", 404, "There is no such SKU"),
    ("method-not-allowed", 405, "This address does not know the method"),
    ("request-timeout", 408, "The request did not arrive in time"),
    ("out-of-stock", 409, "Less is left than asked for"),
    ("stock-limit", 409, "The stock would be larger than it may be"),
    ("body-too-large", 413, "The body is too large"),
    ("invalid-order", 422, "The order is not valid"),
    ("invalid-request", 422, "The request is not valid"),
    ("idempotency-conflict", 422, "The key was used for another request"),
    ("internal", 500, "Something went wrong here"),
    ("deadline-exceeded", 503, "There was not enough time"),
    ("fenced-out", 503, "Another holder of the lock was faster"),
    ("lock-lost", 503, "The lock was lost"),
    ("lock-timeout", 503, "The lock was not free in time"),
    ("overloaded", 503, "Too many requests are being served"),
    ("unavailable", 503, "Something that is needed is not available"),
];

impl Problem {
    /// A problem of one of the known codes, with the trace id of the current span.
    ///
    /// # Panics
    /// For a code that is not in the table.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        let &(_, status, title) =
            CODES.iter().find(|(known, ..)| *known == code).expect("every code is in the table");
        let mut problem = Self { status, code, title, detail: detail.into(), members: Map::new() };
        problem.members.insert("trace_id".to_owned(), telemetry::trace_id().into());
        problem
    }

    /// A bug; the cause belongs into the log.
    pub fn internal() -> Self {
        Self::new("internal", "The cause was logged with this trace id.")
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Says what became of an order.
    #[must_use]
    pub fn order(self, standing: Standing) -> Self {
        let standing = match standing {
            Standing::NotPlaced => "not-placed",
            Standing::Unknown => "unknown",
        };
        self.with("order", standing)
    }

    /// Says what became of a change that is no order.
    #[must_use]
    pub fn change(self, standing: Standing) -> Self {
        let standing = match standing {
            Standing::NotPlaced => "not-made",
            Standing::Unknown => "unknown",
        };
        self.with("change", standing)
    }

    /// Whether the same request may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        self.status == 503
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let mut body = Map::new();
        body.insert("type".to_owned(), format!("urn:lockstock:problem:{}", self.code).into());
        body.insert("title".to_owned(), self.title.into());
        body.insert("status".to_owned(), self.status.into());
        body.insert("detail".to_owned(), self.detail.clone().into());
        body.insert("code".to_owned(), self.code.into());
        body.extend(self.members.clone());
        Value::Object(body).to_string()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_the_members_that_clients_rely_on() {
        for (code, status, _) in CODES {
            let problem = Problem::new(code, "why").order(Standing::NotPlaced);
            let body: Value = serde_json::from_str(&problem.to_json()).unwrap();
            for member in ["type", "title", "detail", "trace_id", "order"] {
                assert!(body[member].is_string(), "{code}: {member}");
            }
            assert_eq!((&body["code"], &body["status"]), (&(*code).into(), &(*status).into()));
        }
    }
}
