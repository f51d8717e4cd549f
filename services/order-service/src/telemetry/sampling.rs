//! What is sampled, by the standard `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`.
//!
//! Promises that a value which is not understood is refused at start, and that what is not sampled is recorded all the
//! same: whether it is thrown away is decided when it is over (`keep`).

use std::collections::BTreeMap;

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceId},
};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

use super::TelemetryError;

const NAME: &str = "OTEL_TRACES_SAMPLER";
const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// The sampler that the variables ask for.
pub(super) fn sampler(vars: &BTreeMap<String, String>) -> Result<Sampler, TelemetryError> {
    let get = |name: &str| vars.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let by_parent = |root| Sampler::ParentBased(Box::new(root));
    let ratio = || {
        let text = get(ARGUMENT).unwrap_or("1");
        match text.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Sampler::TraceIdRatioBased(ratio)),
            _ => Err(TelemetryError::setting(
                ARGUMENT,
                format!("must be a ratio from 0.0 to 1.0, not {text:?}"),
            )),
        }
    };
    match get(NAME).unwrap_or("parentbased_always_on") {
        "always_on" => Ok(Sampler::AlwaysOn),
        "always_off" => Ok(Sampler::AlwaysOff),
        "traceidratio" => ratio(),
        "parentbased_always_on" => Ok(by_parent(Sampler::AlwaysOn)),
        "parentbased_always_off" => Ok(by_parent(Sampler::AlwaysOff)),
        "parentbased_traceidratio" => ratio().map(by_parent),
        other => Err(TelemetryError::setting(
            NAME,
            format!(
                "must be always_on, always_off, traceidratio or one of them with parentbased_ before it, not {other:?}"
            ),
        )),
    }
}

/// A sampler that drops nothing: what it does not sample is recorded.
#[derive(Debug, Clone)]
pub(super) struct RecordAll(pub(super) Sampler);

impl ShouldSample for RecordAll {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let mut result = self.0.should_sample(parent, trace, name, kind, attributes, links);
        if result.decision == SamplingDecision::Drop {
            result.decision = SamplingDecision::RecordOnly;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, argument: &str) -> Result<String, String> {
        let vars = [(NAME, name), (ARGUMENT, argument)];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        sampler(&vars.into()).map(|sampler| format!("{sampler:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standard_names_are_understood_and_others_refused() {
        assert_eq!(parsed("", "").unwrap(), "ParentBased(AlwaysOn)");
        assert_eq!(parsed("always_off", "").unwrap(), "AlwaysOff");
        assert_eq!(parsed("traceidratio", "0.25").unwrap(), "TraceIdRatioBased(0.25)");
        assert_eq!(
            parsed("parentbased_traceidratio", "").unwrap(),
            "ParentBased(TraceIdRatioBased(1.0))",
            "the standard's default"
        );
        for argument in ["2", "-0.1", "half", "NaN"] {
            let error = parsed("traceidratio", argument).unwrap_err();
            assert!(error.starts_with(ARGUMENT) && error.contains(argument), "{error}");
        }
        let error = parsed("jaeger_remote", "").unwrap_err();
        assert!(error.starts_with(NAME) && error.contains("jaeger_remote"), "{error}");
    }
}
