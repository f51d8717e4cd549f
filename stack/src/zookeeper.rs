//! A private ZooKeeper ensemble: plain `java … QuorumPeerMain` processes on loopback ports.
//!
//! Promised: when a start returns, each server it started serves clients; transactions are synced to disk.
//! Not promised: that the same server leads after a restart.

mod config;
mod four_letter;
mod links;

use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::future::{join_all, try_join_all};

use crate::{
    AskError, Child, RunDir, StartError, start,
    zookeeper::config::{Layout, Mode},
};

/// An election takes a second; the rest is a noisy machine.
const READY: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
/// It needs no orderly end: its log is its truth.
const STOP: Duration = Duration::from_secs(3);

/// Shape and clock of an ensemble.
#[derive(Debug, Clone, Copy)]
pub struct ZooKeeperConfig {
    /// How many servers; 1 is a standalone server.
    pub servers: usize,
    /// The tick: sessions expire on its multiples.
    pub tick: Duration,
    /// The shortest session a client may ask for.
    pub min_session: Duration,
    /// The longest.
    pub max_session: Duration,
    /// Whether a server can be cut off from the others; its links then go through proxies.
    pub cuttable: bool,
}

impl Default for ZooKeeperConfig {
    fn default() -> Self {
        Self {
            servers: 3,
            tick: Duration::from_millis(500),
            min_session: Duration::from_secs(1),
            max_session: Duration::from_mins(1),
            cuttable: false,
        }
    }
}

/// A private ensemble on free loopback ports. Servers are counted from 0. Dropping it stops it.
#[derive(Debug)]
pub struct ZooKeeper {
    layout: Layout,
    children: Vec<Mutex<Child>>,
}

impl ZooKeeper {
    /// Starts all servers; returns once each one serves clients.
    ///
    /// # Panics
    /// When the configuration asks for no server at all.
    pub async fn start(dir: &RunDir, config: ZooKeeperConfig) -> Result<Self, StartError> {
        assert!(config.servers > 0, "an ensemble has at least one server");
        let layout = Layout::create(dir.place(), config)?;
        let spawned = (0..layout.servers.len()).map(|i| layout.spawn(i).map(Mutex::new));
        let children = spawned.collect::<Result<Vec<_>, _>>()?;
        let zookeeper = Self { layout, children };
        try_join_all((0..zookeeper.servers()).map(|i| zookeeper.until_serving(i))).await?;
        Ok(zookeeper)
    }

    /// `host:port,host:port…` followed by the chroot (`""` or `/path`).
    pub fn connect_string(&self, chroot: &str) -> String {
        let hosts = (0..self.servers()).map(|i| self.address(i).to_string());
        format!("{}{chroot}", hosts.collect::<Vec<_>>().join(","))
    }

    /// The client port of one server.
    pub fn address(&self, server: usize) -> SocketAddr {
        self.layout.servers[server].client
    }

    /// How many servers it has, running or not.
    pub fn servers(&self) -> usize {
        self.layout.servers.len()
    }

    /// The process of a server's last start.
    pub fn server(&self, server: usize) -> Child {
        self.current(server).clone()
    }

    /// Asks one server a four-letter word.
    pub async fn four_letter(&self, server: usize, word: &str) -> Result<String, AskError> {
        let asked = four_letter::ask(self.address(server), word).await;
        asked.map_err(|source| AskError::Unreachable {
            server: config::name(server),
            question: word.into(),
            source,
        })
    }

    /// Watches held by the servers that run.
    pub async fn watch_count(&self) -> Result<u64, AskError> {
        let counts = self.running().map(async |i| {
            let answer = self.four_letter(i, "mntr").await?;
            four_letter::value(&answer, "zk_watch_count").ok_or_else(|| AskError::Unexpected {
                server: config::name(i),
                question: "mntr".into(),
                answer: answer.chars().take(200).collect(),
            })
        });
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    /// The watches on nodes whose path begins so, on the servers that run: path and session of each.
    pub async fn watches_below(&self, path: &str) -> Result<Vec<(String, i64)>, AskError> {
        let answers = try_join_all(self.running().map(|i| self.four_letter(i, "wchp"))).await?;
        let all = answers.iter().flat_map(|answer| four_letter::watches(answer));
        Ok(all.filter(|(watched, _)| watched.starts_with(path)).collect())
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.servers()).filter(|&i| self.server(i).is_running())
    }

    /// The server that leads (or stands alone), if there is one now.
    pub async fn leader(&self) -> Option<usize> {
        let modes = join_all((0..self.servers()).map(|i| self.mode(i))).await;
        modes.into_iter().position(|mode| matches!(mode, Ok(Mode::Leader | Mode::Standalone)))
    }

    /// Stops one server; returns once its process is gone.
    pub async fn stop_server(&self, server: usize) {
        self.server(server).stop(STOP).await;
    }

    /// Starts one server again; returns once it serves clients. Does nothing to one that runs.
    pub async fn start_server(&self, server: usize) -> Result<(), StartError> {
        self.spawn_if_down(server)?;
        self.until_serving(server).await
    }

    /// Stops all servers.
    pub async fn stop_all(&self) {
        join_all((0..self.servers()).map(|i| self.stop_server(i))).await;
    }

    /// Starts all servers that do not run; returns once each one serves clients.
    pub async fn start_all(&self) -> Result<(), StartError> {
        for server in 0..self.servers() {
            self.spawn_if_down(server)?;
        }
        try_join_all((0..self.servers()).map(|i| self.until_serving(i))).await?;
        Ok(())
    }

    /// Cuts one server off from the others while it goes on serving its clients. Needs [`ZooKeeperConfig::cuttable`].
    pub fn isolate(&self, server: usize) -> io::Result<()> {
        self.layout.links.isolate(server)
    }

    /// Ends [`isolate`](Self::isolate).
    pub fn reunite(&self, server: usize) -> io::Result<()> {
        self.layout.links.reunite(server)
    }

    fn current(&self, server: usize) -> MutexGuard<'_, Child> {
        self.children[server].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn_if_down(&self, server: usize) -> Result<(), StartError> {
        let mut child = self.current(server);
        if !child.is_running() {
            *child = self.layout.spawn(server)?;
        }
        Ok(())
    }

    async fn mode(&self, server: usize) -> Result<Mode, String> {
        let answer =
            four_letter::ask(self.address(server), "srvr").await.map_err(|error| error.to_string())?;
        Mode::of(&answer).ok_or_else(|| answer.lines().next().unwrap_or("an empty answer").to_owned())
    }

    async fn until_serving(&self, server: usize) -> Result<(), StartError> {
        let ask = async || self.mode(server).await.map(|_| ());
        start::until_ready(&self.server(server), READY, POLL, ask).await
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        let children: Vec<Child> = (0..self.servers()).map(|i| self.server(i)).collect();
        for child in &children {
            child.terminate();
            child.resume();
        }
        let until = Instant::now() + STOP;
        for child in &children {
            if child.wait_exit_blocking(until).is_none() {
                child.kill();
            }
        }
    }
}
