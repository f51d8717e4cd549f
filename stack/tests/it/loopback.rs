//! Servers in this process, for proxies to stand before.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};

pub(crate) const SOON: Duration = Duration::from_secs(20);
/// Long enough for loopback to deliver, had anything been sent.
pub(crate) const A_WHILE: Duration = Duration::from_millis(150);

/// Serves each connection, and hands on what is told of what it saw.
pub(crate) async fn server<Seen, Served>(
    serve: impl Fn(TcpStream, UnboundedSender<Seen>) -> Served + Send + 'static,
) -> (SocketAddr, UnboundedReceiver<Seen>)
where
    Seen: Send + 'static,
    Served: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, sees) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, tell.clone()));
        }
    });
    (address, sees)
}
