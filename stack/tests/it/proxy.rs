//! Connections through the proxy are lost in three ways.

use std::io;

use stack::{Cut, Proxy, Silence};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use crate::loopback::{A_WHILE, SOON, server};

/// Answers every byte with the same byte, and tells what it saw.
async fn echo(mut stream: TcpStream, tell: mpsc::UnboundedSender<u8>) {
    while let Ok(byte) = stream.read_u8().await {
        tell.send(byte).ok();
        stream.write_u8(byte).await.ok();
    }
}

async fn answer(client: &mut TcpStream) -> io::Result<u8> {
    timeout(SOON, client.read_u8()).await.expect("an answer or an end")
}

/// A proxy before an echo, and a connection that works.
async fn connected() -> (Proxy, TcpStream, mpsc::UnboundedReceiver<u8>) {
    let (address, mut sees) = server(echo).await;
    let proxy = Proxy::start(address).expect("it starts");
    let mut client = TcpStream::connect(proxy.address()).await.expect("it accepts");
    client.write_u8(1).await.expect("it takes");
    assert_eq!(answer(&mut client).await.expect("an echo"), 1);
    assert_eq!(sees.recv().await, Some(1));
    assert_eq!(proxy.connections().expect("it runs"), 1);
    (proxy, client, sees)
}

async fn works(proxy: &Proxy) {
    let mut client = TcpStream::connect(proxy.address()).await.expect("it accepts");
    client.write_u8(9).await.expect("it takes");
    assert_eq!(answer(&mut client).await.expect("an echo"), 9);
}

#[tokio::test]
async fn cuts_with_fin_or_reset_and_refuses_until_restored() {
    for (how, expected) in
        [(Cut::Fin, io::ErrorKind::UnexpectedEof), (Cut::Reset, io::ErrorKind::ConnectionReset)]
    {
        let (proxy, mut client, _sees) = connected().await;
        proxy.cut(how).expect("it obeys");
        assert_eq!(answer(&mut client).await.map_err(|error| error.kind()), Err(expected));
        assert_eq!(proxy.connections().expect("it runs"), 0);
        let refused = TcpStream::connect(proxy.address()).await.map(drop).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::ConnectionRefused));
        proxy.restore().expect("it listens again");
        works(&proxy).await;
    }
}

#[tokio::test]
async fn drops_connections_and_accepts_the_next_at_once() {
    let (proxy, mut client, _sees) = connected().await;
    proxy.drop_connections(Cut::Reset).expect("it obeys");
    let end = answer(&mut client).await.map_err(|error| error.kind());
    assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    works(&proxy).await;
}

#[tokio::test]
async fn silence_holds_back_and_restore_delivers() {
    let (proxy, mut client, mut sees) = connected().await;
    proxy.silence(Silence::Both).expect("it obeys");
    client.write_u8(2).await.expect("the kernel takes it");
    let mut late = TcpStream::connect(proxy.address()).await.expect("new ones are accepted");
    late.write_u8(3).await.expect("the kernel takes it");
    assert!(timeout(A_WHILE, sees.recv()).await.is_err(), "nothing reaches the server");
    proxy.restore().expect("it obeys");
    assert_eq!(answer(&mut client).await.expect("the held echo"), 2);
    assert_eq!(answer(&mut late).await.expect("the held echo"), 3);
}

#[tokio::test]
async fn a_lost_reply_is_a_request_that_was_done() {
    let (proxy, mut client, mut sees) = connected().await;
    proxy.silence(Silence::Replies).expect("it obeys");
    client.write_u8(4).await.expect("it takes");
    assert_eq!(sees.recv().await, Some(4), "the server acts");
    assert!(timeout(A_WHILE, client.read_u8()).await.is_err(), "the client does not learn of it");
    proxy.cut(Cut::Fin).expect("it obeys");
    assert_eq!(answer(&mut client).await.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn the_end_of_one_side_is_passed_on() {
    let (proxy, mut client, _sees) = connected().await;
    client.write_u8(5).await.expect("it takes");
    client.shutdown().await.expect("the client ends its side");
    assert_eq!(answer(&mut client).await.expect("the last echo"), 5);
    assert_eq!(answer(&mut client).await.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    drop(proxy);
}
