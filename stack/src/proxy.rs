//! A TCP proxy whose connections can be lost on demand: at once, or between a client and ZooKeeper at a chosen frame.
//!
//! Promised: a fault is in force when the call that asked for it returns; while silent, nothing passes that had not
//! been passed on before. Not promised: anything about message boundaries where it carries bytes.

mod carry;
mod message;
mod plan;
mod script;
mod serve;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, mpsc},
    thread,
};

use tokio::sync::mpsc as async_mpsc;

use crate::proxy::{
    script::Script,
    serve::{Ask, Reply},
};

pub use crate::proxy::{
    message::{Message, Op, Stage},
    plan::{Plan, seed},
    script::{Then, Trigger, When},
};

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
pub struct Proxy<Carries = Bytes> {
    address: SocketAddr,
    asks: async_mpsc::UnboundedSender<(Ask, Reply)>,
    carries: Carries,
}

/// A proxy of bytes, whatever they mean.
#[derive(Debug)]
pub struct Bytes;

/// A proxy of ZooKeeper's client protocol, and no other: it can be told what happens to which frame.
#[derive(Debug)]
pub struct Frames(Arc<Script>);

impl Proxy {
    /// Starts forwarding.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        Self::forward(target, None, Bytes)
    }
}

impl Proxy<Frames> {
    /// Starts forwarding to the client port of a ZooKeeper server.
    pub fn start_frames(target: SocketAddr) -> io::Result<Self> {
        let script = Arc::new(Script::default());
        Self::forward(target, Some(Arc::clone(&script)), Frames(script))
    }

    /// Chooses what happens to a frame that is yet to come.
    pub fn on(&self, when: When, then: Then) -> Trigger {
        self.carries.0.arm([(when, then)])
    }

    /// Lets a plan happen, one fault after the other.
    pub fn play(&self, plan: &Plan) -> Trigger {
        self.carries.0.arm(plan.steps())
    }
}

impl<Carries> Proxy<Carries> {
    fn forward(target: SocketAddr, script: Option<Arc<Script>>, carries: Carries) -> io::Result<Self> {
        let port = crate::ports::free(1)?[0];
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (asks, inbox) = async_mpsc::unbounded_channel();
        let (started, wait) = mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::spawn(move || runtime.block_on(serve::serve(address, target, script, inbox, started)));
        wait.recv().map_err(|_| gone())??;
        Ok(Self { address, asks, carries })
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
