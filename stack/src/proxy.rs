//! A TCP proxy whose connections can be lost on demand.

use std::{io, net::SocketAddr};

/// How connections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// An orderly end (FIN).
    Fin,
    /// A reset (RST), as from a machine that crashed.
    Reset,
}

/// What is held back while connections stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Both directions, as when packets are dropped.
    Both,
    /// What the client sends: the server never sees it.
    Requests,
    /// What the server sends: it acts, and the client does not learn of it.
    Replies,
}

/// Listens on a loopback port and forwards to a target. Knows nothing of what it carries.
#[derive(Debug)]
pub struct Proxy {}

impl Proxy {
    /// Starts forwarding.
    pub fn start(_target: SocketAddr) -> io::Result<Self> {
        todo!()
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        todo!()
    }
    /// Ends all connections and refuses new ones until [`restore`](Self::restore). Done when it returns.
    pub fn cut(&self, _how: Cut) {
        todo!()
    }
    /// Ends all connections; new ones are accepted at once.
    pub fn drop_connections(&self, _how: Cut) {
        todo!()
    }
    /// Keeps connections open, accepts new ones, and holds back what they carry.
    pub fn silence(&self, _what: Silence) {
        todo!()
    }
    /// Forwards again; what was held back follows.
    pub fn restore(&self) -> io::Result<()> {
        todo!()
    }
    /// How many connections it carries now.
    pub fn connections(&self) -> usize {
        todo!()
    }
}
