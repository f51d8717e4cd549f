//! One connection through the proxy.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
    time::timeout,
};

use crate::proxy::{Cut, Silence};

/// How long an ended connection is kept to swallow what the other side still sends: closing at once would make the
/// kernel answer that with a reset.
const DRAIN: Duration = Duration::from_secs(1);

/// What holds for every connection now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Forward,
    Hold(Silence),
    End(Cut),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl Rule {
    fn holds(self, direction: Direction) -> bool {
        match self {
            Self::Forward | Self::End(_) => false,
            Self::Hold(Silence::Both) => true,
            Self::Hold(Silence::Requests) => direction == Direction::ToServer,
            Self::Hold(Silence::Replies) => direction == Direction::ToClient,
        }
    }
}

/// Carries bytes until both sides have ended or a rule ends it.
pub(super) async fn carry(client: TcpStream, target: SocketAddr, mut rule: watch::Receiver<Rule>) {
    let mut client = client;
    let connected = tokio::select! {
        how = ended(rule.clone()) => Err(how),
        server = connect(target, &mut rule) => Ok(server),
    };
    let mut server = match connected {
        Ok(Ok(server)) => server,
        // The target refuses, so we do.
        Ok(Err(_)) => return end(client, Cut::Reset),
        Err(how) => return end(client, how),
    };
    // Both are loopback: what is to be measured is the servers' own behaviour, not the kernel's patience.
    client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).ok();
    let how = {
        let (client_in, client_out) = client.split();
        let (server_in, server_out) = server.split();
        let there = pump(client_in, server_out, rule.clone(), Direction::ToServer);
        let back = pump(server_in, client_out, rule.clone(), Direction::ToClient);
        tokio::select! {
            biased;
            how = ended(rule) => how,
            done = async { tokio::try_join!(there, back) } => if done.is_ok() { Cut::Fin } else { Cut::Reset },
        }
    };
    end(client, how);
    end(server, how);
}

async fn connect(target: SocketAddr, rule: &mut watch::Receiver<Rule>) -> io::Result<TcpStream> {
    rule.wait_for(|rule| !rule.holds(Direction::ToServer)).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
    TcpStream::connect(target).await
}

/// Resolves when a rule ends all connections. Dropping the proxy does that too.
async fn ended(mut rule: watch::Receiver<Rule>) -> Cut {
    let end = rule.wait_for(|rule| matches!(rule, Rule::End(_))).await;
    match end.as_deref() {
        Ok(&Rule::End(how)) => how,
        _ => Cut::Fin,
    }
}

/// One direction; passes on the end of the stream too.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut rule: watch::Receiver<Rule>,
    direction: Direction,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        let mut rest = &buffer[..read];
        loop {
            // What was read before the silence began is held as well.
            if rule.wait_for(|rule| !rule.holds(direction)).await.is_err() {
                return Ok(());
            }
            if rest.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                _ = rule.changed() => {}
                written = to.write(rest) => rest = &rest[written?..],
            }
        }
        if read == 0 {
            return to.shutdown().await;
        }
    }
}

fn end(mut stream: TcpStream, how: Cut) {
    match how {
        // Without it the close says FIN, which is the next best.
        Cut::Reset => stream.set_zero_linger().unwrap_or_default(),
        Cut::Fin => {
            tokio::spawn(async move {
                stream.shutdown().await.ok();
                let mut sink = tokio::io::sink();
                timeout(DRAIN, tokio::io::copy(&mut stream, &mut sink)).await.ok();
            });
        }
    }
}
