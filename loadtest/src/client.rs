//! One attempt: sends one request, reads the whole reply, records both, never retries.
//!
//! Promises: whatever happens within the timeout ends in exactly one record, and the record is handed
//! to the history before the attempt returns. Redirects and proxies are off: a request goes where the
//! record says it went.

mod reply;

use std::{error::Error as _, time::Duration};

use reqwest::{RequestBuilder, redirect};
use serde_json::json;

use crate::{
    history::{Closed, Line, Op, Record, Recorder, now_ms},
    trace::RootSpan,
};

/// What to ask for; the same value serves every attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Place an order under a key.
    Order {
        /// `Idempotency-Key`.
        key: String,
        /// What to order.
        lines: Vec<Line>,
    },
    /// Cancel an order.
    Cancel {
        /// The key it was placed with.
        key: String,
        /// Its id.
        order_id: String,
    },
    /// Read a path.
    Read {
        /// Id of the request in the history.
        key: String,
        /// Path, with its slash.
        path: String,
    },
    /// Add units.
    Restock {
        /// Id of the request in the history.
        key: String,
        /// What to add.
        line: Line,
    },
    /// Set the units.
    Set {
        /// Id of the request in the history.
        key: String,
        /// What to set.
        line: Line,
    },
}

impl Ask {
    /// The key of its records.
    pub fn key(&self) -> &str {
        match self {
            Self::Order { key, .. }
            | Self::Cancel { key, .. }
            | Self::Read { key, .. }
            | Self::Restock { key, .. }
            | Self::Set { key, .. } => key,
        }
    }

    /// The operation of its records.
    pub const fn op(&self) -> Op {
        match self {
            Self::Order { .. } => Op::Order,
            Self::Cancel { .. } => Op::Cancel,
            Self::Read { .. } => Op::Read,
            Self::Restock { .. } => Op::Restock,
            Self::Set { .. } => Op::Set,
        }
    }

    fn lines(&self) -> Vec<Line> {
        match self {
            Self::Order { lines, .. } => lines.clone(),
            Self::Restock { line, .. } | Self::Set { line, .. } => vec![line.clone()],
            Self::Cancel { .. } | Self::Read { .. } => Vec::new(),
        }
    }

    fn order_id(&self) -> Option<String> {
        match self {
            Self::Cancel { order_id, .. } => Some(order_id.clone()),
            _ => None,
        }
    }
}

/// Who sends, where to, and which attempt it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The user.
    pub user: usize,
    /// Index of the host.
    pub host: usize,
    /// Number, from 1.
    pub number: u32,
}

/// What an attempt gave: its record, and for how long the service asked to wait.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As written to the history.
    pub record: Record,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// Sends attempts.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    run: String,
    hosts: Vec<String>,
    recorder: Recorder,
}

impl Client {
    /// A client of the hosts (at least one), each attempt of which ends within `timeout`.
    pub fn new(run: &str, hosts: &[String], timeout: Duration, recorder: Recorder) -> reqwest::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("lockstock-loadtest/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let hosts = hosts.iter().map(|host| host.trim_end_matches('/').to_owned()).collect();
        Ok(Self { http, run: run.to_owned(), hosts, recorder })
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Sends one request and records it.
    ///
    /// # Errors
    /// Only when the history cannot be written; everything else is a record.
    ///
    /// # Cancel safety
    /// Dropped between sending and the reply, the request has no record: do not drop it.
    pub async fn attempt(&self, ask: &Ask, attempt: Attempt) -> Result<Answer, Closed> {
        let span = RootSpan::random();
        let host = &self.hosts[attempt.host % self.hosts.len()];
        let request = self.request(ask, host).header("traceparent", span.traceparent());
        let mut record = Record {
            run: self.run.clone(),
            user: attempt.user,
            host: host.clone(),
            op: ask.op(),
            key: ask.key().to_owned(),
            attempt: attempt.number,
            sent_at: now_ms(),
            received_at: 0.0,
            lines: ask.lines(),
            status: 0,
            code: None,
            placed: None,
            order_id: ask.order_id(),
            instance: None,
            token: None,
            position: None,
            wait_ms: None,
            hold_ms: None,
            available: None,
            short_sku: None,
            trace_id: Some(span.trace_id()),
            error: None,
        };
        let retry_after = match whole_reply(request).await {
            Ok(reply) => {
                record.status = reply.status;
                reply::fill(&mut record, &reply.body);
                reply.retry_after
            }
            Err(error) => {
                record.error = Some(error);
                None
            }
        };
        // The wall clock may be set back while a request is under way; an interval never is.
        record.received_at = now_ms().max(record.sent_at);
        self.recorder.record(record.clone()).await?;
        Ok(Answer { record, retry_after })
    }

    fn request(&self, ask: &Ask, host: &str) -> RequestBuilder {
        match ask {
            Ask::Order { key, lines } => self
                .http
                .post(format!("{host}/orders"))
                .header("Idempotency-Key", key)
                .json(&json!({ "lines": lines })),
            Ask::Cancel { order_id, .. } => self.http.post(format!("{host}/orders/{order_id}/cancel")),
            Ask::Read { path, .. } => self.http.get(format!("{host}{path}")),
            Ask::Restock { line, .. } => self
                .http
                .post(format!("{host}/stock/{}/restock", line.sku))
                .json(&json!({ "quantity": line.quantity })),
            Ask::Set { line, .. } => {
                self.http.put(format!("{host}/stock/{}", line.sku)).json(&json!({ "on_hand": line.quantity }))
            }
        }
    }
}

struct Reply {
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

/// The reply with all of its body: a status whose body was cut off decides nothing, because the id of
/// an order stands in the body.
async fn whole_reply(request: RequestBuilder) -> Result<Reply, String> {
    let response = request.send().await.map_err(|error| explain(&error))?;
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    let body = response.bytes().await.map_err(|error| explain(&error))?.to_vec();
    Ok(Reply { status, retry_after, body })
}

/// The innermost cause names what happened (refused, reset, timed out); the outer ones only where.
fn explain(error: &reqwest::Error) -> String {
    let kind = if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "connect"
    } else {
        "broken"
    };
    let mut cause = error.source();
    let mut innermost = None;
    while let Some(next) = cause {
        innermost = Some(next.to_string());
        cause = next.source();
    }
    match innermost {
        Some(innermost) => format!("{kind}: {innermost}"),
        None => kind.to_owned(),
    }
}
