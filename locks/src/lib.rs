//! Placeholder skeleton; being replaced.
#![allow(missing_docs, unused, clippy::pedantic, clippy::unused_async)]
use std::{fmt, sync::Arc, time::Duration};
use time::OffsetDateTime;
use tokio::time::Instant;
#[derive(Debug, thiserror::Error)] #[error("bad connect string")] pub struct ConfigError;
#[derive(Debug, thiserror::Error)] #[error("bad path")] pub struct PathError;
#[derive(Debug, thiserror::Error)] #[error("not connected")] pub struct NotConnected;
#[derive(Debug, thiserror::Error)] #[error("operation")] pub struct OperationError;
#[derive(Debug, thiserror::Error)] #[error("close")] pub struct CloseError;
pub struct SessionConfig;
impl SessionConfig {
    pub fn new(connect: &str) -> Result<Self, ConfigError> { todo!() }
    pub fn with_session_timeout(self, t: Duration) -> Self { todo!() }
    pub fn with_instance(self, n: impl Into<String>) -> Self { todo!() }
    pub fn with_metadata(self, m: serde_json::Value) -> Self { todo!() }
    pub fn with_observer(self, o: Arc<dyn Observer>) -> Self { todo!() }
}
#[derive(Debug, Clone)] pub struct NodeData { pub node: String, pub instance: Option<String>, pub traceparent: Option<String>, pub label: Option<String> }
#[derive(Debug, Clone)] pub struct Queued { pub position: usize, pub blocker: Option<NodeData> }
pub trait Observer: Send + Sync + 'static {
    fn queued(&self, path: &str, recipe: Recipe, wait: &Queued) {}
    fn acquired(&self, path: &str, recipe: Recipe, waited: Duration) {}
    fn failed(&self, path: &str, recipe: Recipe, error: &AcquireError) {}
    fn lost(&self, path: &str, recipe: Recipe, reason: &Lost) {}
    fn released(&self, path: &str, recipe: Recipe, held: Duration, result: &Result<(), ReleaseError>) {}
    fn session(&self, state: &SessionState) {}
}
#[derive(Clone)] pub struct Session;
impl Session {
    pub fn start(config: SessionConfig) -> Session { todo!() }
    pub fn state(&self) -> SessionState { todo!() }
    pub fn watch_state(&self) -> tokio::sync::watch::Receiver<SessionState> { todo!() }
    pub async fn connected(&self, deadline: Instant) -> Result<SessionInfo, NotConnected> { todo!() }
    pub fn mutex(&self, recipe: Recipe, path: &str) -> Result<Mutex, PathError> { todo!() }
    pub async fn members(&self) -> Result<Vec<Member>, OperationError> { todo!() }
    pub async fn close(&self, grace: Duration) -> Result<(), CloseError> { todo!() }
    #[cfg(feature = "faults")] pub async fn expire(&self) -> Result<i64, OperationError> { todo!() }
}
#[derive(Debug, Clone, PartialEq, Eq)] pub struct SessionInfo { pub id: i64, pub negotiated_timeout: Duration, pub lease: Duration }
#[derive(Debug, Clone, PartialEq, Eq)] #[non_exhaustive] pub enum SessionState { Connecting, Connected(SessionInfo), Suspended(SessionInfo), Lost(SessionInfo), Closed }
impl SessionState { pub fn is_connected(&self) -> bool { todo!() } }
#[derive(Debug, Clone, serde::Serialize)] pub struct Member { pub session_id: i64, pub czxid: i64, pub instance: Option<String>, #[serde(with = "time::serde::rfc3339")] pub since: OffsetDateTime, pub metadata: serde_json::Value, pub mine: bool }
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)] #[non_exhaustive] pub enum Recipe { Simple, Fair }
impl fmt::Display for Recipe { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { todo!() } }
#[derive(Clone)] pub struct Mutex;
impl Mutex {
    pub fn path(&self) -> &str { todo!() }
    pub fn recipe(&self) -> Recipe { todo!() }
    pub async fn acquire(&self, a: Acquire) -> Result<Guard, AcquireError> { todo!() }
    pub async fn try_acquire(&self, a: Acquire) -> Result<Guard, AcquireError> { todo!() }
}
#[derive(Debug, Clone)] pub struct Acquire;
impl Acquire {
    pub fn until(i: Instant) -> Self { todo!() }
    pub fn within(d: Duration) -> Self { todo!() }
    pub fn with_traceparent(self, t: impl Into<String>) -> Self { todo!() }
    pub fn with_label(self, t: impl Into<String>) -> Self { todo!() }
}
#[must_use = "the lock is released when the guard is dropped"] #[derive(Debug)] pub struct Guard;
impl Guard {
    pub fn token(&self) -> i64 { todo!() }
    pub fn path(&self) -> &str { todo!() }
    pub fn node(&self) -> &str { todo!() }
    pub fn session_id(&self) -> i64 { todo!() }
    pub fn position(&self) -> usize { todo!() }
    pub fn waited(&self) -> Duration { todo!() }
    pub fn held(&self) -> Duration { todo!() }
    pub fn acquired_at(&self) -> OffsetDateTime { todo!() }
    pub fn check(&self) -> Result<(), Lost> { todo!() }
    pub async fn lost(&self) -> Lost { todo!() }
    pub async fn release(self) -> Result<(), ReleaseError> { todo!() }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)] #[non_exhaustive] pub enum Lost { #[error("a")] SessionExpired, #[error("a")] LeaseRunOut, #[error("a")] NodeDeleted, #[error("a")] Closed }
impl Lost { pub fn as_str(&self) -> &'static str { todo!() } }
#[derive(Debug, thiserror::Error)] #[non_exhaustive] pub enum AcquireError { #[error("t")] Timeout { path: String, waited: Duration, position: Option<usize> }, #[error("b")] Busy { path: String }, #[error("s")] SessionLost { path: String }, #[error("n")] NodeDeleted { path: String }, #[error("c")] Closed { path: String }, #[error("r")] Refused { path: String, source: OperationError } }
impl AcquireError { pub fn is_retryable(&self) -> bool { todo!() } }
#[derive(Debug, thiserror::Error)] #[non_exhaustive] pub enum ReleaseError { #[error("l")] Lost { path: String, reason: Lost }, #[error("p")] Pending { path: String } }
pub struct Inspector;
impl Inspector {
    pub async fn connect(connect: &str) -> Result<Self, OperationError> { todo!() }
    pub async fn locks(&self, root: &str) -> Result<Vec<LockView>, OperationError> { todo!() }
    pub async fn lock(&self, path: &str) -> Result<LockView, OperationError> { todo!() }
    pub async fn members(&self) -> Result<Vec<Member>, OperationError> { todo!() }
    pub async fn close(self) { todo!() }
}
#[derive(Debug, Clone, serde::Serialize)] pub struct LockView { pub path: String, pub entries: Vec<LockEntry> }
#[derive(Debug, Clone, serde::Serialize)] pub struct LockEntry { pub node: String, pub position: usize, pub token: i64, pub session_id: i64, pub instance: Option<String>, pub traceparent: Option<String>, pub label: Option<String>, #[serde(with = "time::serde::rfc3339")] pub since: OffsetDateTime }
