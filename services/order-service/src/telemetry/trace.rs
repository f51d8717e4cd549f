//! The current span's identity, in the forms that replies and lock nodes carry.

use std::collections::HashMap;

use opentelemetry::{
    Context,
    propagation::TextMapPropagator,
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// The trace id of the current span, 32 hexadecimal digits.
pub fn trace_id() -> String {
    Context::current().span().span_context().trace_id().to_string()
}

/// The W3C `traceparent` of the current span, if there is one.
pub fn traceparent() -> Option<String> {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&Context::current(), &mut carrier);
    carrier.remove("traceparent")
}

/// The span that a `traceparent` names; `None` if it is malformed.
pub fn span_context(traceparent: &str) -> Option<SpanContext> {
    let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_written_alike() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let span = span_context(text).expect("a span");
        assert_eq!(span.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        let guard = Context::new().with_remote_span_context(span).attach();
        assert_eq!(traceparent().as_deref(), Some(text));
        assert_eq!(trace_id(), "0af7651916cd43dd8448eb211c80319c");
        drop(guard);
        assert_eq!(traceparent(), None);
    }

    #[test]
    fn nonsense_is_no_span() {
        for text in ["", "00-0-0-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01"] {
            assert!(span_context(text).is_none(), "{text}");
        }
    }
}
