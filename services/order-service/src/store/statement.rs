//! Database statements and their spans, with the stable names of the OpenTelemetry conventions.
//!
//! Promises that a span carries the text that runs, which holds parameters and never a value, and that a statement which
//! failed or got no reply is an error span.

use std::future::Future;

use tracing::{Instrument, Span, field::Empty};

/// One statement: `statement!("UPDATE", "stock", "UPDATE stock SET …")` or `statement!("COMMIT")`.
pub(super) struct Statement {
    pub(super) operation: &'static str,
    pub(super) collection: Option<&'static str>,
    pub(super) summary: &'static str,
    pub(super) text: &'static str,
}

macro_rules! statement {
    ($operation:literal, $collection:literal, $text:literal) => {
        $crate::store::statement::Statement {
            operation: $operation,
            collection: Some($collection),
            summary: concat!($operation, " ", $collection),
            text: $text,
        }
    };
    ($operation:literal, $text:literal) => {
        $crate::store::statement::Statement {
            operation: $operation,
            collection: None,
            summary: $operation,
            text: $text,
        }
    };
}

pub(super) use statement;

impl Statement {
    fn span(&self, database: &str) -> Span {
        tracing::info_span!(
            "db.query",
            otel.name = self.summary,
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            db.system.name = "postgresql",
            db.namespace = database,
            db.operation.name = self.operation,
            db.collection.name = self.collection,
            db.query.summary = self.summary,
            db.query.text = self.text,
            db.response.status_code = Empty,
            error.type = Empty,
        )
    }

    /// Runs a query of this statement in its span.
    pub(super) async fn run<T>(
        &self,
        database: &str,
        query: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let mut unanswered = Unanswered(Some(self.span(database)));
        let span = unanswered.0.clone().unwrap_or_else(Span::none);
        let result = query.instrument(span.clone()).await;
        unanswered.0 = None;
        if let Err(error) = &result {
            tell(&span, error);
        }
        result
    }
}

/// A statement that was given up, for want of time, had no reply.
struct Unanswered(Option<Span>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            fail(&span, "cancelled", "given up before its reply");
        }
    }
}

fn tell(span: &Span, error: &sqlx::Error) {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            span.record("db.response.status_code", code.as_ref());
            // The message of the server may quote values; its code says enough.
            fail(span, &code, "refused by the server");
        }
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) => fail(span, "connection-lost", "the connection broke"),
        other => fail(span, "_OTHER", &other.to_string()),
    }
}

fn fail(span: &Span, kind: &str, description: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "error");
    span.record("otel.status_description", description);
}
