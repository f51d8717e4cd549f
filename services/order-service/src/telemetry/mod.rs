//! Traces, metrics and logs.
//!
//! Promises the names of `observability/catalog.yaml`, no label that grows with SKUs, and a flush that is bounded even if
//! the collector is down. Does not promise that a span arrives: a full queue drops, and counts what it drops.

mod counts;
mod export;
mod keep;
mod metrics;
mod names;
mod observer;
mod sampling;
mod setup;
mod trace;

pub use metrics::{Metrics, Sources};
pub use names::{METRICS, MetricKind, MetricName, OVERTAKEN, TOKEN_BEHIND_FENCE};
pub use observer::LockObserver;
pub(crate) use setup::encode;
pub use setup::{Telemetry, TelemetryError};
pub use trace::{span_context, trace_id, traceparent};
