//! An exporter that says once that the collector is away, and once that it is back.
//!
//! Promises one log line for each change. Spans of a failed export are gone; they are counted in the line that says that
//! the collector is back.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use tracing::Metadata;

/// Tells of the exporter inside when it begins to fail and when it is well again.
#[derive(Debug)]
pub(super) struct SaidOnce<E> {
    inner: E,
    /// Spans lost since the collector was last there.
    lost: AtomicU64,
}

impl<E> SaidOnce<E> {
    pub(super) const fn new(inner: E) -> Self {
        Self { inner, lost: AtomicU64::new(0) }
    }
}

impl<E: SpanExporter> SpanExporter for SaidOnce<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.inner.export(batch).await;
        // Exports of one exporter never overlap.
        match &result {
            Ok(()) => match self.lost.swap(0, Ordering::Relaxed) {
                0 => {}
                lost => tracing::info!(lost, "the collector takes spans again"),
            },
            Err(error) => {
                if self.lost.fetch_add(spans, Ordering::Relaxed) == 0 {
                    tracing::warn!(%error, "the collector does not take spans; they are lost until it does");
                }
            }
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Whether a log line stays: those of the SDK and of its retries, one or more for each failed export, do not.
pub(super) fn is_told(line: &Metadata<'_>) -> bool {
    line.name() != "BatchSpanProcessor.ExportError" && !line.name().starts_with("Export.Failed.")
}
