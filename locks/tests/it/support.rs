//! What the tests share: a contender's session (through a proxy or not), and a look at the truth with a plain
//! client that knows nothing of the library.

use std::time::Duration;

use stack::Proxy;
use stack::testing::{Shared, shared};
use tokio::time::Instant;
use zk_locks::{Acquire, Lock, Recipe, Role, RwRecipe, Session, SessionConfig, SessionInfo};
use zookeeper_client as zk;

/// What every exclusive lock has to stand, whatever its recipe.
pub(crate) const EXCLUSIVE: [Role; 4] =
    [FAIR, SIMPLE, Role::Write(RwRecipe::Fair), Role::Write(RwRecipe::Broadcast)];
pub(crate) const FAIR: Role = Role::Mutex(Recipe::Fair);
pub(crate) const SIMPLE: Role = Role::Mutex(Recipe::Simple);
pub(crate) const SESSION: Duration = Duration::from_secs(2);
/// Nothing in these tests takes this long unless it hangs.
pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const LOCK: &str = "/locks/one";

/// A chroot of its own on the shared ensemble.
pub(crate) struct Place {
    pub(crate) servers: &'static Shared,
    pub(crate) connect: String,
    pub(crate) chroot: String,
    pub(crate) outsider: zk::Client,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let servers = shared().await;
        let connect = servers.fresh_chroot();
        let chroot = connect[connect.find('/').unwrap()..].to_owned();
        let hosts = &connect[..connect.find('/').unwrap()];
        let outsider = zk::Client::connect(hosts).await.unwrap();
        Self { servers, connect, chroot, outsider }
    }

    pub(crate) async fn session(&self, name: &str) -> Session {
        connected(config(&self.connect, name)).await
    }

    /// A session whose only way to the ensemble is a proxy to its first server.
    pub(crate) async fn proxied(&self, name: &str) -> (Session, Proxy) {
        let proxy = Proxy::start(self.servers.zookeeper().address(0)).unwrap();
        let session = connected(config(&format!("{}{}", proxy.address(), self.chroot), name)).await;
        (session, proxy)
    }

    pub(crate) fn directory(&self) -> String {
        format!("{}{LOCK}", self.chroot)
    }

    /// The contenders' nodes as the server has them now, by a synced read.
    pub(crate) async fn nodes(&self) -> Vec<String> {
        let directory = self.directory();
        self.outsider.sync(&directory).await.unwrap();
        match self.outsider.list_children(&directory).await {
            Ok(children) => children,
            Err(zk::Error::NoNode) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn wait_for_nodes(&self, count: usize) {
        eventually(SOON, async || self.nodes().await.len() == count, &format!("{count} nodes")).await;
    }

    /// Nothing is left in the lock directory within `span`.
    pub(crate) async fn is_empty_within(&self, span: Duration) {
        let deadline = Instant::now() + span;
        loop {
            let nodes = self.nodes().await;
            if nodes.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {nodes:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn config(connect: &str, name: &str) -> SessionConfig {
    SessionConfig::new(connect).unwrap().with_session_timeout(SESSION).with_instance(name)
}

pub(crate) async fn connected(config: SessionConfig) -> Session {
    let session = Session::start(config);
    info(&session).await;
    session
}

pub(crate) async fn info(session: &Session) -> SessionInfo {
    session.connected(Instant::now() + SOON).await.expect("the ensemble is up")
}

pub(crate) fn lock(session: &Session, role: Role) -> Lock {
    match role {
        Role::Mutex(recipe) => session.mutex(recipe, LOCK).unwrap(),
        Role::Read(recipe) => session.rw_lock(recipe, LOCK).unwrap().read_lock().clone(),
        Role::Write(recipe) => session.rw_lock(recipe, LOCK).unwrap().write_lock().clone(),
        other => panic!("{other} has a test of its own"),
    }
}

pub(crate) fn soon() -> Acquire {
    Acquire::within(SOON)
}

/// Waits until `done` says so, and fails after `span`.
pub(crate) async fn eventually(span: Duration, done: impl AsyncFn() -> bool, what: &str) {
    let deadline = Instant::now() + span;
    while !done().await {
        assert!(Instant::now() < deadline, "not within {span:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
