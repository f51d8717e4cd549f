//! A server that answers a reconnect with another session than the one asked for, without a word.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use zk_locks::Lost;

use crate::support::{FAIR, Place, SOON, config, connected, info, lock, soon};

/// Forwards to `target`, but asks for a new session in the name of every client that wants its old one back.
async fn impostor(target: SocketAddr) -> (SocketAddr, watch::Sender<u32>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let cuts = watch::Sender::new(0);
    let cut = cuts.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cut = cut.subscribe();
            tokio::spawn(async move {
                // length 4, protocol 4, last zxid 8, timeout 4, session id 8, password …
                let mut request = [0; 28];
                client.read_exact(&mut request).await?;
                request[20..28].fill(0);
                let mut server = TcpStream::connect(target).await?;
                server.write_all(&request).await?;
                tokio::select! {
                    carried = copy_bidirectional(&mut client, &mut server) => carried.map(drop),
                    _ = cut.changed() => Ok(()),
                }
            });
        }
    });
    (address, cuts)
}

/// Case 12: the new session counts as loss, though every request is answered.
#[tokio::test]
async fn a_session_that_was_exchanged_in_silence_is_lost() {
    let place = Place::new().await;
    let (address, cuts) = impostor(place.servers.zookeeper().address(0)).await;
    let session = connected(config(&format!("{address}{}", place.chroot), "victim")).await;
    let first = info(&session).await;
    let guard = lock(&session, FAIR).acquire(soon()).await.unwrap();
    cuts.send_modify(|count| *count += 1);
    let reason = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
    assert_eq!(reason, Lost::SessionExpired);
    // The old session is left to the server's timeout; the next one waits for it like everyone else.
    let next = lock(&session, FAIR).acquire(soon()).await.unwrap();
    assert_ne!(next.session_id(), first.id);
    next.release().await.unwrap();
    place.is_empty_within(Duration::from_secs(1)).await;
}
