//! A TCP proxy whose connections can be lost on demand.
//!
//! Promised: a fault is in force when the call that asked for it returns; while silent, nothing passes that had not
//! been passed on before. Not promised: anything about message boundaries; it knows nothing of what it carries.

mod carry;
mod serve;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc,
    thread,
};

use tokio::sync::mpsc as async_mpsc;

use crate::proxy::serve::{Ask, Reply};

/// How connections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// An orderly end (FIN).
    Fin,
    /// A reset (RST), as from a machine that crashed and came back.
    Reset,
}

/// What is held back while connections stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Both directions, as when packets are dropped. New connections are accepted and do not reach the server.
    Both,
    /// What the client sends: the server never sees it.
    Requests,
    /// What the server sends: it acts, and the client does not learn of it.
    Replies,
}

/// Listens on a loopback port and forwards to a target, on a thread and a runtime of its own. Dropping it ends all
/// its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    asks: async_mpsc::UnboundedSender<(Ask, Reply)>,
}

impl Proxy {
    /// Starts forwarding.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let port = crate::ports::free(1)?[0];
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (asks, inbox) = async_mpsc::unbounded_channel();
        let (started, wait) = mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::spawn(move || runtime.block_on(serve::serve(address, target, inbox, started)));
        wait.recv().map_err(|_| gone())??;
        Ok(Self { address, asks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and refuses new ones until [`restore`](Self::restore).
    pub fn cut(&self, how: Cut) -> io::Result<()> {
        self.ask(Ask::Cut(how)).map(drop)
    }

    /// Ends all connections; new ones are accepted at once.
    pub fn drop_connections(&self, how: Cut) -> io::Result<()> {
        self.ask(Ask::DropConnections(how)).map(drop)
    }

    /// Keeps connections open, accepts new ones, and holds back what they carry.
    pub fn silence(&self, what: Silence) -> io::Result<()> {
        self.ask(Ask::Silence(what)).map(drop)
    }

    /// Forwards again; what was held back follows.
    pub fn restore(&self) -> io::Result<()> {
        self.ask(Ask::Restore).map(drop)
    }

    /// How many connections it carries now.
    pub fn connections(&self) -> io::Result<usize> {
        self.ask(Ask::Count)
    }

    /// Blocks for as long as the proxy's thread needs to obey: a few milliseconds.
    fn ask(&self, ask: Ask) -> io::Result<usize> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.asks.send((ask, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

fn gone() -> io::Error {
    io::Error::other("the proxy's thread is gone")
}
