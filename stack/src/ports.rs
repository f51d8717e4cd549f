//! Free loopback ports.
//!
//! Promised: distinct, and free at the moment of asking. Not promised: that they stay free; but they lie below the
//! range from which the kernel takes the local ports of outgoing connections, so a server that is restarted under
//! load finds its port again.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
};

use rand::RngExt as _;

/// Ports below this one are for well-known services.
const LOWEST: u16 = 10_000;
const TRIES: usize = 10_000;

/// `n` distinct ports of 127.0.0.1 that nobody listens on. All are held until all are known.
pub fn free(n: usize) -> io::Result<Vec<u16>> {
    let end = ephemeral_start().filter(|&start| start > LOWEST + 1_000);
    let mut rng = rand::rng();
    let mut held = Vec::with_capacity(n);
    for _ in 0..TRIES {
        if held.len() == n {
            break;
        }
        // Where outgoing connections may use every port, the kernel's choice is as good as any.
        let port = end.map_or(0, |end| rng.random_range(LOWEST..end));
        held.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
    }
    if held.len() < n {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("found no {n} free loopback ports")));
    }
    held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// The first port that the kernel gives to outgoing connections.
fn ephemeral_start() -> Option<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    range.split_whitespace().next()?.parse().ok()
}
