//! The proxy's thread: listens, obeys, and starts a task for each connection.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc::SyncSender},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc::UnboundedReceiver, watch},
    task::JoinSet,
};

use crate::proxy::{
    Cut, Silence,
    carry::{Rule, carry},
    script::Script,
};

/// What the owner asks of the thread.
#[derive(Debug)]
pub(super) enum Ask {
    Cut(Cut),
    DropConnections(Cut),
    Silence(Silence),
    Restore,
    Count,
}

/// How the thread answers: done, and the number of connections.
pub(super) type Reply = SyncSender<io::Result<usize>>;

pub(super) async fn serve(
    address: SocketAddr,
    target: SocketAddr,
    script: Option<Arc<Script>>,
    mut inbox: UnboundedReceiver<(Ask, Reply)>,
    started: SyncSender<io::Result<()>>,
) {
    let mut listener = match TcpListener::bind(address).await {
        Ok(listener) => Some(listener),
        Err(error) => return started.send(Err(error)).unwrap_or_default(),
    };
    started.send(Ok(())).ok();
    let rule = watch::Sender::new(Rule::Forward);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            message = inbox.recv() => {
                let Some((ask, reply)) = message else { return };
                let done = obey(ask, address, &rule, &mut listener, &mut connections).await;
                reply.send(done.map(|()| connections.len())).ok();
            }
            Some(_) = connections.join_next() => {}
            client = accept(listener.as_ref()) => {
                connections.spawn(carry(client, target, rule.subscribe(), script.clone()));
            }
        }
    }
}

async fn obey(
    ask: Ask,
    address: SocketAddr,
    rule: &watch::Sender<Rule>,
    listener: &mut Option<TcpListener>,
    connections: &mut JoinSet<()>,
) -> io::Result<()> {
    while connections.try_join_next().is_some() {}
    match ask {
        Ask::Count => {}
        Ask::Silence(what) => {
            rule.send_replace(Rule::Hold(what));
        }
        Ask::Restore => {
            if listener.is_none() {
                *listener = Some(TcpListener::bind(address).await?);
            }
            rule.send_replace(Rule::Forward);
        }
        Ask::Cut(how) => {
            // Closing it resets what waits to be accepted.
            *listener = None;
            end_all(how, rule, connections).await;
        }
        Ask::DropConnections(how) => {
            // Those that wait to be accepted are connections to their clients.
            let former = *rule.borrow();
            end_all(how, rule, connections).await;
            rule.send_replace(former);
        }
    }
    Ok(())
}

async fn end_all(how: Cut, rule: &watch::Sender<Rule>, connections: &mut JoinSet<()>) {
    rule.send_replace(Rule::End(how));
    while connections.join_next().await.is_some() {}
}

/// The next client; none ever comes while there is no listener.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    if let Some(listener) = listener {
        loop {
            // An error is that of the client, which is gone already.
            if let Ok((client, _)) = listener.accept().await {
                return client;
            }
        }
    }
    std::future::pending().await
}
