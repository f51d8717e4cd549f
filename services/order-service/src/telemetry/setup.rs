//! Starts and stops tracing, metrics and logs for the process.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue, global,
    metrics::{Meter, MeterProvider as _},
    trace::TracerProvider as _,
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use prometheus::{Registry, TextEncoder};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, Targets, filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::{
    counts::Counts,
    export::{Counting, repeats},
    keep::Keeper,
    sampling::{RecordAll, sampler},
};

const SCOPE: &str = "order-service";
/// The standard's default of `OTEL_BSP_MAX_QUEUE_SIZE`.
const QUEUE_MAX: usize = 2048;

/// The process's telemetry.
pub struct Telemetry {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    registry: Registry,
    counts: Arc<Counts>,
}

/// Telemetry could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// A standard variable has a value that this program does not understand. It is not ignored.
    #[error("{name} {problem}")]
    Setting {
        /// Which variable.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The OTLP exporter refuses its configuration.
    #[error("the OTLP exporter could not be built")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The Prometheus exporter could not be registered.
    #[error("the prometheus exporter could not be built")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
    /// `RUST_LOG` is malformed.
    #[error("RUST_LOG is malformed")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The process has another subscriber already.
    #[error("another subscriber is installed")]
    Installed(#[from] tracing_subscriber::util::TryInitError),
}

impl TelemetryError {
    pub(super) fn setting(name: &'static str, problem: String) -> Self {
        Self::Setting { name, problem }
    }

    /// Whether the configuration is at fault.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Setting { .. } | Self::Filter(_))
    }
}

impl Telemetry {
    /// Installs the process-wide subscriber and providers. To be called inside the runtime that lives longest: the
    /// exporter's connection belongs to it.
    ///
    /// # Errors
    /// [`TelemetryError`] for a malformed `RUST_LOG`, or an `OTEL_*` variable with a value that cannot be honoured.
    pub fn start(vars: &BTreeMap<String, String>, instance: &str) -> Result<Self, TelemetryError> {
        let filter = match vars.get("RUST_LOG").map(String::as_str) {
            None | Some("") => EnvFilter::try_new("info")?,
            Some(filter) => EnvFilter::try_new(filter)?,
        };
        let resource = resource(vars, instance);
        let exported = traces_are_exported(vars)?;
        let sampler = sampler(vars)?;
        let queue_max = queue_max(vars)?;
        let counts = Arc::new(Counts::new(queue_max));
        let tracers = SdkTracerProvider::builder().with_resource(resource.clone());
        let tracers = if exported {
            let counting = Counting::new(SpanExporter::builder().with_tonic().build()?, Arc::clone(&counts));
            let batches = BatchConfigBuilder::default().with_max_queue_size(queue_max).build();
            let processor = BatchSpanProcessor::builder(counting).with_batch_config(batches).build();
            let processor = Keeper::new(processor, Arc::clone(&counts));
            tracers.with_sampler(RecordAll(sampler)).with_span_processor(processor)
        } else {
            tracers.with_sampler(sampler)
        };
        let tracers = tracers.build();
        let registry = Registry::new();
        let reader = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()?;
        let meters = SdkMeterProvider::builder().with_resource(resource).with_reader(reader).build();
        global::set_text_map_propagator(TraceContextPropagator::new());
        global::set_tracer_provider(tracers.clone());
        // Spans and their events are made whatever RUST_LOG says, and only ours: those of the exporter would feed on
        // themselves. The lock library tells of every turn of a wait at level DEBUG.
        let spans = Targets::new()
            .with_target("order_service", tracing::Level::INFO)
            .with_target("zk_locks", tracing::Level::DEBUG);
        let once = filter_fn(|metadata| !repeats(metadata.target(), metadata.name()));
        tracing_subscriber::registry()
            .with(tracing_opentelemetry::layer().with_tracer(tracers.tracer(SCOPE)).with_filter(spans))
            .with(
                tracing_subscriber::fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_span_list(false)
                    .with_writer(std::io::stderr)
                    .with_filter(filter.and(once)),
            )
            .try_init()?;
        if !exported {
            tracing::info!("traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not set");
        }
        let telemetry = Self { tracers, meters, registry, counts };
        Counts::observe(Arc::clone(&telemetry.counts), &telemetry.meter());
        Ok(telemetry)
    }

    /// Makes instruments.
    pub fn meter(&self) -> Meter {
        self.meters.meter(SCOPE)
    }

    /// What `/metrics` encodes.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Sends what is queued, within the bound; blocks.
    pub fn shut_down(self, within: Duration) {
        if let Err(error) = self.tracers.shutdown_with_timeout(within) {
            tracing::debug!(%error, "the collector did not take the last spans in time");
        }
        let dropped = self.counts.dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "spans were dropped since the start");
        }
        if let Err(error) = self.meters.shutdown() {
            tracing::debug!(%error, "the metrics did not shut down cleanly");
        }
    }
}

/// Encodes all metrics in Prometheus' text format.
pub(crate) fn encode(registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&registry.gather())
}

fn resource(vars: &BTreeMap<String, String>, instance: &str) -> Resource {
    let mut resource =
        Resource::builder().with_attribute(KeyValue::new("service.instance.id", instance.to_owned()));
    let named = vars.get("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || vars.get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
    if !named {
        resource = resource.with_service_name(SCOPE);
    }
    resource.build()
}

/// Whether traces leave, over the one protocol that there is.
fn traces_are_exported(vars: &BTreeMap<String, String>) -> Result<bool, TelemetryError> {
    const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
    const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let get = |name: &str| vars.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let wanted = match get(EXPORTER) {
        None | Some("otlp") => true,
        Some("none") => false,
        Some(other) => {
            return Err(TelemetryError::setting(EXPORTER, format!("must be otlp or none, not {other:?}")));
        }
    };
    let endpoint = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(get("OTEL_EXPORTER_OTLP_ENDPOINT"));
    let disabled = get("OTEL_SDK_DISABLED").is_some_and(|disabled| disabled.eq_ignore_ascii_case("true"));
    if !wanted || disabled || endpoint.is_none() {
        return Ok(false);
    }
    match PROTOCOLS.into_iter().find_map(|name| Some((name, get(name)?))) {
        None | Some((_, "grpc")) => Ok(true),
        Some((name, other)) => Err(TelemetryError::setting(
            name,
            format!(
                "must be grpc, not {other:?}: this program speaks OTLP over gRPC alone (port 4317 by custom)"
            ),
        )),
    }
}

fn queue_max(vars: &BTreeMap<String, String>) -> Result<usize, TelemetryError> {
    const NAME: &str = "OTEL_BSP_MAX_QUEUE_SIZE";
    let Some(text) = vars.get(NAME).filter(|text| !text.is_empty()) else { return Ok(QUEUE_MAX) };
    match text.parse() {
        Ok(number) if (1..=1_000_000).contains(&number) => Ok(number),
        _ => Err(TelemetryError::setting(
            NAME,
            format!("must be a whole number from 1 to 1000000, not {text:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported(vars: &[(&str, &str)]) -> Result<bool, String> {
        let vars = vars.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        traces_are_exported(&vars).map_err(|error| error.to_string())
    }

    #[test]
    fn traces_leave_only_when_the_standard_names_say_so() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");
        assert_eq!(exported(&[]), Ok(false));
        assert_eq!(exported(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(false));
        assert_eq!(exported(&[endpoint]), Ok(true));
        assert_eq!(exported(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:1")]), Ok(true));
        assert_eq!(exported(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Ok(false));
        assert_eq!(exported(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(false));
    }

    #[test]
    fn a_protocol_or_an_exporter_that_is_not_spoken_is_refused_by_name() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(exported(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Ok(true));
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let problem = exported(&[endpoint, (name, value)]).unwrap_err();
            assert!(problem.starts_with(name) && problem.contains(value), "{problem}");
        }
        let for_traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
        assert_eq!(exported(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), for_traces]), Ok(true));
    }
}
