//! What happens to a chosen frame between a client and ZooKeeper, and to no other.

use std::io;

use stack::{Cut, Frames, Op, Plan, Proxy, Silence, Stage, Then, When};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use crate::loopback::{A_WHILE, SOON, server};

const CREATE: i32 = 15;
const GET: i32 = 4;

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; usize::try_from(stream.read_u32().await?).expect("it fits")];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_frame(stream: &mut TcpStream, parts: &[&[u8]]) -> io::Result<()> {
    let body = parts.concat();
    let length = u32::try_from(body.len()).expect("it fits").to_be_bytes();
    stream.write_all(&[length.as_slice(), &body].concat()).await
}

/// Answers as a ZooKeeper server would as far as the headers go, and tells what it saw.
async fn headers(mut stream: TcpStream, tell: mpsc::UnboundedSender<Vec<u8>>) {
    let mut begun = false;
    while let Ok(frame) = read_frame(&mut stream).await {
        let xid = frame[..4].to_vec();
        tell.send(frame).ok();
        let reply: &[&[u8]] = if begun { &[&xid, &[0; 12]] } else { &[&[0; 36]] };
        write_frame(&mut stream, reply).await.ok();
        begun = true;
    }
}

struct World {
    proxy: Proxy<Frames>,
    client: TcpStream,
    sees: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl World {
    async fn new() -> Self {
        let (address, sees) = server(headers).await;
        let proxy = Proxy::start_frames(address).expect("it starts");
        let client = TcpStream::connect(proxy.address()).await.expect("it accepts");
        let mut world = Self { proxy, client, sees };
        world.connect().await;
        world
    }

    /// Resumes session 7, in a connect request whose other fields are zero.
    async fn connect(&mut self) -> Vec<u8> {
        write_frame(&mut self.client, &[&[0; 16], &7_i64.to_be_bytes(), &[0; 20]]).await.expect("it takes");
        read_frame(&mut self.client).await.expect("a session");
        self.sees.recv().await.expect("a connect request")
    }

    async fn ask(&mut self, xid: i32, op: i32, path: &str) {
        let length = u32::try_from(path.len()).expect("it fits").to_be_bytes();
        let parts = [&xid.to_be_bytes()[..], &op.to_be_bytes(), &length, path.as_bytes()];
        write_frame(&mut self.client, &parts).await.expect("it takes");
    }

    /// The number of the next reply, or the end of the connection.
    async fn answer(&mut self) -> Result<i32, io::ErrorKind> {
        let frame = timeout(SOON, read_frame(&mut self.client)).await.expect("an answer or an end");
        frame.map(|frame| i32::from_be_bytes(frame[..4].try_into().expect("a header"))).map_err(|e| e.kind())
    }

    async fn is_silent(&mut self) -> bool {
        timeout(A_WHILE, self.client.peek(&mut [0])).await.is_err()
    }

    /// The number of the next request that the server sees.
    async fn seen(&mut self) -> i32 {
        let frame = timeout(SOON, self.sees.recv()).await.expect("a request").expect("it serves");
        i32::from_be_bytes(frame[..4].try_into().expect("a header"))
    }
}

#[tokio::test]
async fn a_held_request_holds_what_is_behind_it_and_nothing_before() {
    let mut world = World::new().await;
    let held = world.proxy.on(When::request(Op::Create2).below("/locks").nth(2), Then::Hold);
    for (xid, op, path) in
        [(1, CREATE, "/locks/a"), (2, CREATE, "/other"), (3, CREATE, "/locks/b"), (4, GET, "/x")]
    {
        world.ask(xid, op, path).await;
    }
    let message = timeout(SOON, held.happened()).await.expect("it happens");
    assert_eq!((message.xid, message.path.as_deref()), (3, Some("/locks/b")));
    assert_eq!((world.answer().await, world.answer().await), (Ok(1), Ok(2)));
    assert!(world.is_silent().await, "neither what is held nor what is behind it");
    held.release();
    assert_eq!((world.answer().await, world.answer().await), (Ok(3), Ok(4)));
}

#[tokio::test]
async fn a_reply_is_cut_off_after_its_request_was_done() {
    for (how, expected) in
        [(Cut::Fin, io::ErrorKind::UnexpectedEof), (Cut::Reset, io::ErrorKind::ConnectionReset)]
    {
        let mut world = World::new().await;
        let cut = world.proxy.on(When::reply(Op::GetData), Then::Cut(how));
        world.ask(1, CREATE, "/a").await;
        assert_eq!(world.answer().await, Ok(1));
        world.ask(2, GET, "/a").await;
        assert_eq!(world.answer().await, Err(expected));
        assert_eq!((world.seen().await, world.seen().await), (1, 2), "the server acts");
        assert_eq!(cut.so_far().len(), 1);
        world.client = TcpStream::connect(world.proxy.address()).await.expect("the next one is accepted");
        world.connect().await;
        world.ask(3, GET, "/a").await;
        assert_eq!(world.answer().await, Ok(3), "it happens once");
    }
}

#[tokio::test]
async fn a_mute_connection_stays_open() {
    for (silence, seen) in
        [(Silence::Both, vec![1]), (Silence::Requests, vec![1]), (Silence::Replies, vec![1, 2])]
    {
        let mut world = World::new().await;
        let mute = world
            .proxy
            .on(When::any().that(|message| message.stage == Stage::Request).nth(2), Then::Mute(silence));
        world.ask(1, GET, "/a").await;
        assert_eq!(world.answer().await, Ok(1));
        world.ask(2, GET, "/a").await;
        mute.happened().await;
        assert!(world.is_silent().await);
        for xid in seen {
            assert_eq!(world.seen().await, xid, "{silence:?}");
        }
        assert!(world.sees.is_empty(), "{silence:?}");
        assert_eq!(world.proxy.connections().expect("it runs"), 1);
    }
}

#[tokio::test]
async fn one_frame_is_lost_or_late() {
    let mut world = World::new().await;
    let dropped = world.proxy.on(When::reply(Op::GetData), Then::Drop);
    world.ask(1, GET, "/a").await;
    world.ask(2, GET, "/a").await;
    assert_eq!(world.answer().await, Ok(2));
    assert_eq!(dropped.so_far()[0].xid, 1);
    let late = world.proxy.on(When::reply(Op::GetData), Then::Delay(A_WHILE * 2));
    world.ask(3, GET, "/a").await;
    late.happened().await;
    assert!(world.is_silent().await);
    assert_eq!(world.answer().await, Ok(3));
}

#[tokio::test]
async fn a_session_is_not_resumed_but_exchanged() {
    let mut world = World::new().await;
    let exchanged = world.proxy.on(When::request(Op::Connect), Then::Forget);
    world.client = TcpStream::connect(world.proxy.address()).await.expect("it accepts");
    assert_eq!(world.connect().await[16..24], [0; 8], "another session");
    assert_eq!(exchanged.so_far().len(), 1);
    world.client = TcpStream::connect(world.proxy.address()).await.expect("it accepts");
    assert_eq!(world.connect().await[16..24], 7_i64.to_be_bytes(), "once");
}

#[tokio::test]
async fn what_is_taken_back_does_not_happen() {
    let mut world = World::new().await;
    drop(world.proxy.on(When::request(Op::GetData), Then::Cut(Cut::Reset)));
    let held = world.proxy.on(When::reply(Op::GetData), Then::Hold);
    world.ask(1, GET, "/a").await;
    held.happened().await;
    drop(held);
    assert_eq!(world.answer().await, Ok(1), "what is held is let go");
}

#[tokio::test]
async fn a_plan_is_played_step_by_step() {
    let mut world = World::new().await;
    let plan = Plan::random(1, 3);
    let played = world.proxy.play(&plan);
    let mut xid = 0;
    while played.so_far().len() < 3 {
        xid += 1;
        assert!(xid < 500, "{plan} is not played");
        world.ask(xid, GET, "/a").await;
        if timeout(SOON / 40, read_frame(&mut world.client)).await.is_ok_and(|read| read.is_ok()) {
            continue;
        }
        world.client = TcpStream::connect(world.proxy.address()).await.expect("it accepts");
        let resume: [&[u8]; 1] = [&[0; 44]];
        write_frame(&mut world.client, &resume).await.expect("it takes");
        drop(timeout(SOON / 40, read_frame(&mut world.client)).await);
    }
}
