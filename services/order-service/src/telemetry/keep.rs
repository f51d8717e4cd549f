//! Which traces are kept: the sampled ones, and of the others those in which something went wrong.
//!
//! Promises that a span with error status keeps every span that this process made for its trace, before and after it. The
//! decision falls when no span of the trace is open here any more. Keeps back a bounded number of spans; one too many is
//! dropped and counted.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    Context,
    trace::{Span as _, SpanContext, Status, TraceId},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};

use super::counts::{Counts, Fate};

/// How many spans of undecided traces are kept back.
const BUFFER_MAX: usize = 16_384;
/// How many kept traces are remembered, for spans that begin after all others have ended.
const REMEMBERED: usize = 256;

/// Passes spans on, those of an unsampled trace only if there is an error in it.
#[derive(Debug)]
pub(super) struct Keeper<P> {
    next: P,
    counts: Arc<Counts>,
    traces: Mutex<Traces>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Traces {
    open: HashMap<TraceId, Trace>,
    buffered: usize,
    /// The latest that were kept and have no open span.
    kept: VecDeque<TraceId>,
}

/// An unsampled trace with open spans.
#[derive(Debug, Default)]
struct Trace {
    open: usize,
    keep: bool,
    ended: Vec<SpanData>,
}

impl<P: SpanProcessor> Keeper<P> {
    pub(super) fn new(next: P, counts: Arc<Counts>) -> Self {
        Self { next, counts, traces: Mutex::default(), closed: AtomicBool::new(false) }
    }

    fn traces(&self) -> MutexGuard<'_, Traces> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self, span: SpanData) {
        if self.closed.load(Ordering::Relaxed) {
            self.counts.add(Fate::Shutdown, 1);
        } else if self.counts.enqueue() {
            self.next.on_end(span);
        }
    }
}

impl<P: SpanProcessor> SpanProcessor for Keeper<P> {
    fn on_start(&self, span: &mut Span, _: &Context) {
        let context = span.span_context();
        if !context.is_sampled() {
            self.traces().start(context.trace_id());
        }
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            return self.pass_on(span);
        }
        // Not under the lock: the next processor may take its time.
        let ended = self.traces().end(span);
        match ended {
            Ended::Kept(spans) => spans.into_iter().for_each(|span| self.pass_on(sampled(span))),
            Ended::TooMany => self.counts.add(Fate::BufferFull, 1),
            Ended::Undecided => {}
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.closed.store(true, Ordering::Relaxed);
        let result = self.next.shutdown_with_timeout(timeout);
        self.counts.give_up();
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

/// What the end of an unsampled span means.
enum Ended {
    /// These are to be exported.
    Kept(Vec<SpanData>),
    /// It is kept back, or its trace was thrown away.
    Undecided,
    /// There was no room to keep it back.
    TooMany,
}

impl Traces {
    fn start(&mut self, id: TraceId) {
        let keep = || self.kept.contains(&id);
        let trace = self.open.entry(id).or_insert_with(|| Trace { keep: keep(), ..Trace::default() });
        trace.open += 1;
    }

    fn end(&mut self, span: SpanData) -> Ended {
        let id = span.span_context.trace_id();
        let Some(trace) = self.open.get_mut(&id) else { return Ended::Undecided };
        trace.open -= 1;
        trace.keep |= matches!(span.status, Status::Error { .. });
        let ended = if trace.keep {
            self.buffered -= trace.ended.len();
            let mut spans = std::mem::take(&mut trace.ended);
            spans.push(span);
            Ended::Kept(spans)
        } else if self.buffered < BUFFER_MAX {
            self.buffered += 1;
            trace.ended.push(span);
            Ended::Undecided
        } else {
            Ended::TooMany
        };
        if trace.open == 0 {
            let keep = trace.keep;
            self.buffered -= trace.ended.len();
            self.open.remove(&id);
            if keep && !self.kept.contains(&id) {
                self.kept.push_back(id);
                if self.kept.len() > REMEMBERED {
                    self.kept.pop_front();
                }
            }
        }
        ended
    }
}

/// The exporter's processor takes only what says that it is sampled.
fn sampled(mut span: SpanData) -> SpanData {
    let context = &span.span_context;
    span.span_context = SpanContext::new(
        context.trace_id(),
        context.span_id(),
        context.trace_flags().with_sampled(true),
        context.is_remote(),
        context.trace_state().clone(),
    );
    span
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
    use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};

    use super::*;
    use crate::telemetry::sampling::RecordAll;

    /// What is behind the keeper: remembers the names of what comes through.
    #[derive(Debug, Clone, Default)]
    struct Sent(Arc<Mutex<Vec<String>>>);

    impl Sent {
        fn names(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl SpanProcessor for Sent {
        fn on_start(&self, _: &mut Span, _: &Context) {}

        fn on_end(&self, span: SpanData) {
            assert!(span.span_context.is_sampled(), "else the exporter would not take it");
            self.0.lock().unwrap().push(span.name.into_owned());
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }
    }

    /// A tracer that samples nothing.
    fn nothing_sampled() -> (SdkTracer, Sent, Arc<Counts>) {
        let (sent, counts) = (Sent::default(), Arc::new(Counts::new(usize::MAX)));
        let provider = SdkTracerProvider::builder()
            .with_sampler(RecordAll(Sampler::AlwaysOff))
            .with_span_processor(Keeper::new(sent.clone(), Arc::clone(&counts)))
            .build();
        (provider.tracer("test"), sent, counts)
    }

    fn child(tracer: &SdkTracer, name: &'static str, parent: &Context) -> Context {
        Context::new().with_span(tracer.start_with_context(name, parent))
    }

    #[test]
    fn an_error_keeps_what_ended_before_it_and_what_begins_after_the_last() {
        let (tracer, sent, _) = nothing_sampled();
        let root = child(&tracer, "root", &Context::new());
        child(&tracer, "before", &root).span().end();
        assert!(sent.names().is_empty(), "nothing is decided yet");
        let wrong = child(&tracer, "wrong", &root);
        wrong.span().set_status(Status::error("broken"));
        wrong.span().end();
        assert_eq!(sent.names(), ["before", "wrong"]);
        root.span().end();
        child(&tracer, "after", &root).span().end();
        assert_eq!(sent.names(), ["before", "wrong", "root", "after"]);
    }

    #[test]
    fn what_went_well_is_thrown_away_and_needs_no_room() {
        let (tracer, sent, counts) = nothing_sampled();
        for _ in 0..BUFFER_MAX {
            let root = child(&tracer, "root", &Context::new());
            child(&tracer, "child", &root).span().end();
            root.span().end();
        }
        assert!(sent.names().is_empty());
        assert_eq!(counts.dropped(), 0, "thrown away on purpose, not dropped");
    }

    #[test]
    fn one_too_many_to_be_held_back_is_counted() {
        let (tracer, sent, counts) = nothing_sampled();
        let root = child(&tracer, "root", &Context::new());
        for _ in 0..=BUFFER_MAX {
            child(&tracer, "child", &root).span().end();
        }
        assert_eq!(counts.of(Fate::BufferFull), 1);
        root.span().set_status(Status::error("broken"));
        root.span().end();
        assert_eq!(sent.names().len(), BUFFER_MAX + 1, "the root, too");
    }
}
