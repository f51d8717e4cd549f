//! An OTLP receiver: takes spans over gRPC and lets a test look at them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::span as proto,
};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

const ERROR: i32 = 2;
/// Kinds of spans.
pub(super) const SERVER: i32 = 2;
pub(super) const CLIENT: i32 = 3;

/// A span as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) kind: i32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) links: Vec<Link>,
    pub(super) events: Vec<Event>,
    /// What went wrong, if the span has error status.
    pub(super) error: Option<String>,
    pub(super) service: String,
    pub(super) instance: String,
    attributes: BTreeMap<String, String>,
}

/// A link as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) trace: String,
    pub(super) span: String,
}

/// An event as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) name: String,
    attributes: BTreeMap<String, String>,
}

impl Event {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.attributes.keys().map(String::as_str)
    }

    /// As text; empty if there is none.
    pub(super) fn attribute(&self, name: &str) -> String {
        self.attributes.get(name).cloned().unwrap_or_default()
    }
}

impl Span {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.attributes.keys().map(String::as_str)
    }

    /// The first event whose name begins so.
    pub(super) fn event(&self, name: &str) -> &Event {
        let found = self.events.iter().find(|event| event.name.starts_with(name));
        found.unwrap_or_else(|| panic!("no event {name} in {self:?}"))
    }

    /// As text; empty if there is none.
    pub(super) fn attribute(&self, name: &str) -> String {
        self.attributes.get(name).cloned().unwrap_or_default()
    }
}

type Spans = Arc<Mutex<Vec<Span>>>;

/// Listens until the test ends.
pub(super) struct Receiver {
    port: u16,
    spans: Spans,
    /// Exports wait until they may read.
    gate: Arc<RwLock<()>>,
}

impl Receiver {
    pub(super) fn start() -> Self {
        Self::at(0)
    }

    /// On a port that is known to be free; 0 finds one.
    pub(super) fn at(port: u16) -> Self {
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], port).into()).expect("a port");
        let port = incoming.local_addr().expect("an address").port();
        let spans = Spans::default();
        let gate = Arc::default();
        let service = TraceServiceServer::new(Collector(Arc::clone(&spans), Arc::clone(&gate)));
        let server = tonic::transport::Server::builder().add_service(service);
        drop(tokio::spawn(server.serve_with_incoming(incoming)));
        Self { port, spans, gate }
    }

    /// No export is answered for as long as the returned value lives.
    pub(super) async fn stall(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that arrived so far.
    pub(super) fn spans(&self) -> Seen {
        Seen(self.spans.lock().expect("no panic").clone())
    }
}

/// Spans that arrived.
#[derive(Debug)]
pub(super) struct Seen(Vec<Span>);

impl Seen {
    pub(super) fn all(&self) -> impl Iterator<Item = &Span> {
        self.0.iter()
    }

    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &Span> {
        self.0.iter().filter(move |span| span.name == name)
    }

    pub(super) fn trace(&self, id: &str) -> Seen {
        Seen(self.0.iter().filter(|span| span.trace == id).cloned().collect())
    }

    /// The only one of that name.
    pub(super) fn one(&self, name: &str) -> &Span {
        let found: Vec<_> = self.named(name).collect();
        assert_eq!(
            found.len(),
            1,
            "{name} in {:?}",
            self.0.iter().map(|span| &span.name).collect::<Vec<_>>()
        );
        found[0]
    }

    pub(super) fn children(&self, parent: &Span) -> impl Iterator<Item = &Span> {
        self.0.iter().filter(move |span| span.parent == parent.id)
    }

    /// The only child of that name.
    pub(super) fn child(&self, parent: &Span, name: &str) -> &Span {
        let found: Vec<_> = self.children(parent).filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name} under {} in {:?}", parent.name, self.0);
        found[0]
    }
}

struct Collector(Spans, Arc<RwLock<()>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        drop(self.1.read().await);
        let mut spans = self.0.lock().expect("no panic");
        for resource in request.into_inner().resource_spans {
            let of_resource = attributes(resource.resource.map(|r| r.attributes).unwrap_or_default());
            let named = |name: &str| of_resource.get(name).cloned().unwrap_or_default();
            let (service, instance) = (named("service.name"), named("service.instance.id"));
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                spans.push(Span {
                    name: span.name,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    kind: span.kind,
                    start: span.start_time_unix_nano,
                    end: span.end_time_unix_nano,
                    links: span.links.iter().map(link).collect(),
                    events: span.events.into_iter().map(event).collect(),
                    error: span.status.filter(|status| status.code == ERROR).map(|status| status.message),
                    service: service.clone(),
                    instance: instance.clone(),
                    attributes: attributes(span.attributes),
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn link(link: &proto::Link) -> Link {
    Link { trace: hex(&link.trace_id), span: hex(&link.span_id) }
}

fn event(event: proto::Event) -> Event {
    Event { name: event.name, attributes: attributes(event.attributes) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(yes) => yes.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |pair: KeyValue| Some((pair.key, text(pair.value?.value?)));
    all.into_iter().filter_map(pair).collect()
}
