//! What became of the spans that were to be exported.
//!
//! Promises that every such span is counted once: exported, or dropped and why, or still under way. Says in the log when
//! spans begin to be dropped, once, and when that has ended.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use opentelemetry::{KeyValue, metrics::Meter};

use super::names;

/// How a span ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The collector took it.
    Exported,
    /// The queue before the exporter was full.
    QueueFull,
    /// Too many undecided spans were kept back.
    BufferFull,
    /// The collector could not be reached, or refused.
    ExportFailed,
    /// The process ended first.
    Shutdown,
}

impl Fate {
    pub(super) const ALL: [Self; 5] =
        [Self::Exported, Self::QueueFull, Self::BufferFull, Self::ExportFailed, Self::Shutdown];

    /// As labels spell it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::QueueFull => "queue-full",
            Self::BufferFull => "buffer-full",
            Self::ExportFailed => "export-failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The counters, and how many spans are under way.
#[derive(Debug)]
pub(super) struct Counts {
    fates: [AtomicU64; Fate::ALL.len()],
    queued: AtomicUsize,
    /// In the batch that is with the exporter; there is never more than one.
    exporting: AtomicUsize,
    queue_max: usize,
    full: AtomicBool,
}

impl Counts {
    pub(super) fn new(queue_max: usize) -> Self {
        Self {
            fates: Default::default(),
            queued: AtomicUsize::new(0),
            exporting: AtomicUsize::new(0),
            queue_max,
            full: AtomicBool::new(false),
        }
    }

    pub(super) fn add(&self, fate: Fate, spans: usize) {
        self.fates[fate as usize].fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(super) fn of(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    /// All that were not exported.
    pub(super) fn dropped(&self) -> u64 {
        Fate::ALL.into_iter().filter(|fate| *fate != Fate::Exported).map(|fate| self.of(fate)).sum()
    }

    /// Takes a place in the queue; without one the span is counted as dropped.
    pub(super) fn enqueue(&self) -> bool {
        let place = |queued| (queued < self.queue_max).then_some(queued + 1);
        if self.queued.fetch_update(Ordering::AcqRel, Ordering::Acquire, place).is_ok() {
            return true;
        }
        self.add(Fate::QueueFull, 1);
        if !self.full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                queue_max = self.queue_max,
                "spans are dropped and counted: the queue to the collector is full (OTEL_BSP_MAX_QUEUE_SIZE)"
            );
        }
        false
    }

    /// Spans leave the queue for the exporter. Those that were given up meanwhile have their fate.
    pub(super) fn export(&self, spans: usize) {
        let leave = |queued: usize| Some(queued.saturating_sub(spans));
        let (Ok(before) | Err(before)) = self.queued.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        self.exporting.store(before.min(spans), Ordering::Release);
        if before.saturating_sub(spans) < self.queue_max / 2 && self.full.swap(false, Ordering::Relaxed) {
            tracing::info!(dropped = self.dropped(), "the queue to the collector has room again");
        }
    }

    /// The exporter is done with what it had.
    pub(super) fn exported(&self, fate: Fate) {
        self.add(fate, self.exporting.swap(0, Ordering::AcqRel));
    }

    /// Nothing is waited for any more: what is in the queue or with the exporter is lost.
    pub(super) fn give_up(&self) {
        let left = self.queued.swap(0, Ordering::AcqRel) + self.exporting.swap(0, Ordering::AcqRel);
        self.add(Fate::Shutdown, left);
    }

    /// Exports the counters, each from the start.
    pub(super) fn observe(counts: std::sync::Arc<Self>, meter: &Meter) {
        let name = names::SPANS;
        let counter =
            meter.u64_observable_counter(name.name).with_unit(name.unit).with_description(name.help);
        let callback = move |observer: &dyn opentelemetry::metrics::AsyncInstrument<u64>| {
            for fate in Fate::ALL {
                observer.observe(counts.of(fate), &[KeyValue::new("outcome", fate.as_str())]);
            }
        };
        counter.with_callback(callback).build();
    }
}
