//! One connection through the proxy.

use std::{
    future::pending,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    io::AsyncWriteExt as _,
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
    time::timeout,
};
use tokio_util::{
    bytes::BytesMut,
    codec::{BytesCodec, Decoder, FramedRead, LengthDelimitedCodec},
};

use crate::proxy::{
    Cut, Op, Silence, Stage, Then,
    message::Conversation,
    script::{Script, Verdict},
};

/// How long an ended connection is kept to swallow what the other side still sends: closing at once would make the
/// kernel answer that with a reset.
const DRAIN: Duration = Duration::from_secs(1);
/// Where the session's number stands in a connect request, after length, protocol, last zxid and timeout.
const SESSION: std::ops::Range<usize> = 20..28;

/// What holds for every connection now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Forward,
    Hold(Silence),
    End(Cut),
}

impl Rule {
    fn holds(self, stage: Stage) -> bool {
        matches!(self, Self::Hold(silence) if silence.holds(stage))
    }
}

impl Silence {
    fn holds(self, stage: Stage) -> bool {
        match self {
            Self::Both => true,
            Self::Requests => stage == Stage::Request,
            Self::Replies => stage == Stage::Reply,
        }
    }
}

/// What the two directions of one connection share.
struct Line {
    rule: watch::Receiver<Rule>,
    /// Of a connection whose frames are known.
    script: Option<Arc<Script>>,
    conversation: Mutex<Conversation>,
    muted: OnceLock<Silence>,
}

/// Why a direction stopped before its end.
enum Stop {
    Broken,
    Cut(Cut),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Carries bytes, or frames if there is a script for them, until both sides have ended or something ends it.
pub(super) async fn carry(
    client: TcpStream,
    target: SocketAddr,
    mut rule: watch::Receiver<Rule>,
    script: Option<Arc<Script>>,
) {
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
    let line = Line { rule, script, conversation: Mutex::default(), muted: OnceLock::new() };
    let how = {
        let (client_in, client_out) = client.split();
        let (server_in, server_out) = server.split();
        let there = line.pump(client_in, server_out, Stage::Request);
        let back = line.pump(server_in, client_out, Stage::Reply);
        tokio::select! {
            biased;
            how = ended(line.rule.clone()) => how,
            done = async { tokio::try_join!(there, back) } => match done {
                Ok(_) => Cut::Fin,
                Err(Stop::Broken) => Cut::Reset,
                Err(Stop::Cut(how)) => how,
            },
        }
    };
    end(client, how);
    end(server, how);
}

async fn connect(target: SocketAddr, rule: &mut watch::Receiver<Rule>) -> io::Result<TcpStream> {
    rule.wait_for(|rule| !rule.holds(Stage::Request)).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
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

impl Line {
    /// One direction; passes on the end of the stream too.
    async fn pump(&self, from: ReadHalf<'_>, mut to: WriteHalf<'_>, stage: Stage) -> Result<(), Stop> {
        let mut rule = self.rule.clone();
        let mut pieces = FramedRead::new(from, Pieces::of(self.script.is_some()));
        loop {
            let mut piece = pieces.next().await.transpose()?;
            if let (Some(script), Some(frame)) = (&self.script, &mut piece)
                && !self.obey(script, stage, frame).await?
            {
                continue;
            }
            if self.muted.get().is_some_and(|silence| silence.holds(stage)) {
                pending::<()>().await;
            }
            let mut rest = piece.as_deref().unwrap_or_default();
            loop {
                // What was read before the silence began is held as well.
                if rule.wait_for(|rule| !rule.holds(stage)).await.is_err() {
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
            if piece.is_none() {
                return Ok(to.shutdown().await?);
            }
        }
    }

    /// Does with a frame what the script says; false if it goes no further.
    async fn obey(&self, script: &Script, stage: Stage, frame: &mut BytesMut) -> Result<bool, Stop> {
        let message = self.conversation.lock().unwrap_or_else(PoisonError::into_inner).read(stage, frame);
        let Verdict::Do(then, mut released) = script.judge(&message) else { return Ok(true) };
        match then {
            Then::Cut(how) => return Err(Stop::Cut(how)),
            Then::Drop => return Ok(false),
            Then::Mute(silence) => drop(self.muted.set(silence)),
            Then::Delay(span) => tokio::time::sleep(span).await,
            // A trigger that is gone releases, too.
            Then::Hold => drop(released.wait_for(|released| *released).await),
            Then::Forget => {
                if message.op == Op::Connect
                    && let Some(session) = frame.get_mut(SESSION)
                {
                    session.fill(0);
                }
            }
        }
        Ok(true)
    }
}

/// What is passed on at a time.
enum Pieces {
    Bytes(BytesCodec),
    Frames(LengthDelimitedCodec),
}

impl Pieces {
    fn of(frames: bool) -> Self {
        if !frames {
            return Self::Bytes(BytesCodec::new());
        }
        // A length of four bytes, and then so many; the length is passed on as well.
        Self::Frames(LengthDelimitedCodec::builder().length_adjustment(4).num_skip(0).new_codec())
    }
}

impl Decoder for Pieces {
    type Item = BytesMut;
    type Error = io::Error;

    fn decode(&mut self, read: &mut BytesMut) -> io::Result<Option<BytesMut>> {
        match self {
            Self::Bytes(codec) => codec.decode(read),
            Self::Frames(codec) => codec.decode(read),
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
