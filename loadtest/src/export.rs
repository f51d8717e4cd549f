//! Sends the root spans of a history to a collector, as OTLP in JSON over HTTP, once the load is over: so tracing never
//! slows the load that it traces.
//!
//! Promises: one span per record, with the id that its request carried. Does not promise that the collector keeps it.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{history::Record, trace::span_id};

/// Spans in one request; the collector refuses bodies over 20 MiB.
const BATCH: usize = 500;
const TIMEOUT: Duration = Duration::from_secs(10);
const KIND_CLIENT: u8 = 3;
const STATUS_ERROR: u8 = 2;

/// The spans did not all arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The collector could not be asked.
    #[error("the collector at {to} cannot be reached")]
    Unreachable {
        /// Where it should be.
        to: String,
        /// Why not.
        source: reqwest::Error,
    },
    /// It refused.
    #[error("the collector at {to} answered {status}")]
    Refused {
        /// Where it is.
        to: String,
        /// What it answered.
        status: StatusCode,
    },
}

/// Sends the root span of each record to the collector at `endpoint`, such as `http://127.0.0.1:4318`.
///
/// # Cancel safety
/// Dropped midway, some batches have been sent.
pub async fn export(endpoint: &str, records: &[Record]) -> Result<(), ExportError> {
    let to = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let unreachable = |source| ExportError::Unreachable { to: to.clone(), source };
    let http = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build().map_err(unreachable)?;
    for batch in records.chunks(BATCH) {
        let reply = http.post(&to).json(&request(batch)).send().await.map_err(unreachable)?;
        if !reply.status().is_success() {
            return Err(ExportError::Refused { to, status: reply.status() });
        }
    }
    Ok(())
}

fn request(records: &[Record]) -> Value {
    let spans: Vec<_> = records.iter().filter_map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "loadtest"), text("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeSpans": [{"scope": {"name": "loadtest"}, "spans": spans}],
    }]})
}

fn span(record: &Record) -> Option<Value> {
    let trace_id = record.trace_id.as_deref()?;
    let mut attributes = vec![
        text("loadtest.run", &record.run),
        text("loadtest.key", &record.key),
        integer("loadtest.attempt", i64::from(record.attempt)),
        text("server.address", &record.host),
    ];
    if record.status != 0 {
        attributes.push(integer("http.response.status_code", i64::from(record.status)));
    }
    if let Some(code) = &record.code {
        attributes.push(text("error.type", code));
    }
    // Refusals that say so (sold out) are answers; no reply, or one that blames the server, is an error.
    let failed = record.status == 0 || record.status >= 500;
    let status = if failed { json!({"code": STATUS_ERROR, "message": record.error}) } else { json!({}) };
    Some(json!({
        "traceId": trace_id,
        "spanId": span_id(trace_id),
        "name": format!("loadtest {}", record.op.as_str()),
        "kind": KIND_CLIENT,
        "startTimeUnixNano": nanoseconds(record.sent_at),
        "endTimeUnixNano": nanoseconds(record.received_at),
        "attributes": attributes,
        "status": status,
    }))
}

/// OTLP in JSON writes 64-bit numbers as text.
fn nanoseconds(unix_ms: f64) -> String {
    Duration::try_from_secs_f64(unix_ms / 1000.0).unwrap_or_default().as_nanos().to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn integer(key: &str, value: i64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fields: &Value) -> Record {
        let mut all = json!({
            "run": "r", "user": 0, "host": "http://h:1", "op": "order", "key": "r-0-1", "attempt": 2,
            "sent_at": 1000.5, "received_at": 1002.0, "lines": [], "status": 201,
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
        });
        all.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
        serde_json::from_value(all).expect("a record")
    }

    #[test]
    fn a_record_is_the_root_that_its_request_named() {
        let span = span(&record(&json!({}))).expect("a span");
        assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span["spanId"], "8448eb211c80319c");
        assert!(span.get("parentSpanId").is_none());
        assert_eq!(span["name"], "loadtest order");
        assert_eq!(
            (span["startTimeUnixNano"].as_str(), span["endTimeUnixNano"].as_str()),
            (Some("1000500000"), Some("1002000000"))
        );
        assert_eq!(span["status"], json!({}));
    }

    #[test]
    fn only_what_the_service_could_not_do_is_an_error() {
        let code = |fields| span(&record(&fields)).expect("a span")["status"]["code"].clone();
        assert_eq!(code(json!({"status": 409, "code": "out-of-stock"})), Value::Null);
        assert_eq!(code(json!({"status": 503, "code": "fenced-out"})), 2);
        assert_eq!(code(json!({"status": 0, "error": "timeout"})), 2);
    }
}
