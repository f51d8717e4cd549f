//! W3C trace context of a request: the load generator is the root of every trace. Pure but for chance.

use rand::RngExt as _;

/// The root of a trace, which is sampled. Its id is the end of the trace's, so that a history, which names the trace,
/// names the span too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSpan {
    trace_id: u128,
}

impl RootSpan {
    /// New ids. Not from the seed: ids must be unique across runs in one tracing back end.
    pub fn random() -> Self {
        let (begin, end): (u64, u64) = (rand::rng().random(), rand::rng().random_range(1..=u64::MAX));
        Self { trace_id: u128::from(begin) << 64 | u128::from(end) }
    }

    /// 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The value of the `traceparent` header, with the sampled flag.
    pub fn traceparent(&self) -> String {
        let trace_id = self.trace_id();
        format!("00-{trace_id}-{}-01", span_id(&trace_id))
    }
}

/// The id of the root span of a trace of ours.
pub fn span_id(trace_id: &str) -> &str {
    trace_id.get(16..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_form_of_the_standard() {
        let span = RootSpan { trace_id: 0xab };
        assert_eq!(span.traceparent(), "00-000000000000000000000000000000ab-00000000000000ab-01");
        assert_eq!(span.trace_id().len(), 32);
        assert_ne!(RootSpan::random(), RootSpan::random());
    }
}
