//! The exporter as the rest sees it: it counts what becomes of its batches, and speaks once when the collector goes away
//! and once when it is back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

use super::counts::{Counts, Fate};

/// An exporter whose failures are counted and told once.
#[derive(Debug)]
pub(super) struct Counting<E> {
    exporter: E,
    counts: Arc<Counts>,
    away: AtomicBool,
}

impl<E> Counting<E> {
    pub(super) fn new(exporter: E, counts: Arc<Counts>) -> Self {
        Self { exporter, counts, away: AtomicBool::new(false) }
    }
}

impl<E: SpanExporter> SpanExporter for Counting<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.counts.export(batch.len());
        match self.exporter.export(batch).await {
            Ok(()) => {
                self.counts.exported(Fate::Exported);
                if self.away.swap(false, Ordering::Relaxed) {
                    tracing::info!(dropped = self.counts.dropped(), "spans are exported again");
                }
            }
            Err(error) => {
                self.counts.exported(Fate::ExportFailed);
                if !self.away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        %error,
                        "spans are not exported: the collector does not take them; they are dropped and counted, \
                         and orders go on"
                    );
                }
            }
        }
        // Said and counted: the processor would say it again for every batch.
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Whether an event of the OpenTelemetry crates repeats, for every batch, what is said here once.
pub(super) fn repeats(target: &str, name: &str) -> bool {
    target.starts_with("opentelemetry")
        && (name.starts_with("Export.Failed")
            || name.ends_with(".ExportFailed")
            || name.starts_with("BatchSpanProcessor.Span")
            || name.starts_with("BatchSpanProcessor.OnEnd")
            || name.starts_with("BatchSpanProcessor.Shutdown"))
}
