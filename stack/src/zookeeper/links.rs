//! The links between the servers of an ensemble, through proxies, so that they can be cut.
//!
//! Promised: an isolated server goes on serving its clients, and not a byte passes between it and the others. Not
//! promised: when the others notice; that is ZooKeeper's business.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use crate::{Proxy, Silence};

/// One server's way to another: a proxy for each of the two ports.
#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    quorum: Proxy,
    election: Proxy,
}

/// All ways there are; none where the servers talk to each other directly.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    /// Starts a proxy for each way, given the client, quorum and election port of each server.
    pub(super) fn between(ports: &[[u16; 3]]) -> io::Result<Self> {
        let start = |port| Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut links = Vec::new();
        for from in 0..ports.len() {
            for (to, &[_, quorum, election]) in ports.iter().enumerate().filter(|(to, _)| *to != from) {
                links.push(Link { from, to, quorum: start(quorum)?, election: start(election)? });
            }
        }
        Ok(Self(links))
    }

    /// The quorum and election port at which `from` finds `to`, if there is a proxy in between.
    pub(super) fn ports(&self, from: usize, to: usize) -> Option<[u16; 2]> {
        let link = self.0.iter().find(|link| (link.from, link.to) == (from, to))?;
        Some([link.quorum.address().port(), link.election.address().port()])
    }

    /// Drops everything between one server and the others, without a word to either.
    pub(super) fn isolate(&self, server: usize) -> io::Result<()> {
        self.of(server).try_for_each(|proxy| proxy.silence(Silence::Both))
    }

    /// Lets one server talk to the others again.
    pub(super) fn reunite(&self, server: usize) -> io::Result<()> {
        self.of(server).try_for_each(Proxy::restore)
    }

    fn of(&self, server: usize) -> impl Iterator<Item = &Proxy> {
        let touched = self.0.iter().filter(move |link| link.from == server || link.to == server);
        touched.flat_map(|link| [&link.quorum, &link.election])
    }
}
