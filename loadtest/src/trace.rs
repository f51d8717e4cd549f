//! W3C trace context of a request: the load generator is the root of every trace. Pure but for chance.

use rand::RngExt as _;

/// A trace of one span, which is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSpan {
    trace_id: u128,
    span_id: u64,
}

impl RootSpan {
    /// New ids. Not from the seed: ids must be unique across runs in one tracing back end.
    pub fn random() -> Self {
        let mut rng = rand::rng();
        Self { trace_id: rng.random_range(1..=u128::MAX), span_id: rng.random_range(1..=u64::MAX) }
    }

    /// 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The value of the `traceparent` header, with the sampled flag.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace_id, self.span_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_form_of_the_standard() {
        let span = RootSpan { trace_id: 0xab, span_id: 0xcd };
        assert_eq!(span.traceparent(), "00-000000000000000000000000000000ab-00000000000000cd-01");
        assert_eq!(span.trace_id().len(), 32);
        assert_ne!(RootSpan::random(), RootSpan::random());
    }
}
