//! What a frame of ZooKeeper's client protocol says: which request, about which node, and which reply belongs to it.
//!
//! Promised: an operation for every frame, and the path where the protocol puts one first; a reply has those of its
//! request. Not promised: that a frame is well formed; what cannot be read is [`Op::Other`].

use std::collections::HashMap;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// From the client to the server: lost before it arrives, it was not applied.
    Request,
    /// From the server to the client: lost before it arrives, it was applied all the same.
    Reply,
}

/// What a request asks for. Replies have the operation of their request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the protocol's own names")]
pub enum Op {
    /// The first frame either way: it makes or resumes a session.
    Connect,
    /// A watch's event: a reply that nobody asked for.
    Notification,
    Create,
    Delete,
    Exists,
    GetData,
    SetData,
    GetChildren,
    Sync,
    Ping,
    GetChildren2,
    CheckWatches,
    RemoveWatches,
    Multi,
    Create2,
    CreateContainer,
    Auth,
    SetWatches,
    GetEphemerals,
    Close,
    /// One that has no name here.
    Other(i32),
}

/// A frame on its way through the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Which way it goes.
    pub stage: Stage,
    /// What it asks for or answers.
    pub op: Op,
    /// The node it is about, where it names one; of a transaction the first.
    pub path: Option<String>,
    /// The number that a reply shares with its request; below zero where the protocol fixes it.
    pub xid: i32,
    /// What a reply says went wrong; zero if nothing did.
    pub error: i32,
}

/// One connection's requests that have no reply yet.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    open: HashMap<i32, (Op, Option<String>)>,
    begun: [bool; 2],
}

impl Op {
    const fn of(code: i32) -> Self {
        match code {
            1 => Self::Create,
            2 => Self::Delete,
            3 => Self::Exists,
            4 => Self::GetData,
            5 => Self::SetData,
            8 => Self::GetChildren,
            9 => Self::Sync,
            11 => Self::Ping,
            12 => Self::GetChildren2,
            14 => Self::Multi,
            15 => Self::Create2,
            17 => Self::CheckWatches,
            18 => Self::RemoveWatches,
            19 => Self::CreateContainer,
            100 => Self::Auth,
            101 | 105 => Self::SetWatches,
            103 => Self::GetEphemerals,
            -11 => Self::Close,
            other => Self::Other(other),
        }
    }

    /// The operation behind a number that the protocol fixes: such requests share it, whoever sends them.
    const fn of_fixed(xid: i32) -> Option<Self> {
        match xid {
            -1 => Some(Self::Notification),
            -2 => Some(Self::Ping),
            -4 => Some(Self::Auth),
            -8 => Some(Self::SetWatches),
            _ => None,
        }
    }

    /// What stands before the path in the body.
    const fn before_path(self) -> Option<usize> {
        match self {
            // Of the first operation within: type, last or not, error.
            Self::Multi => Some(9),
            // Type and state of the event.
            Self::Notification => Some(8),
            Self::Connect | Self::Ping | Self::Auth | Self::SetWatches | Self::Close | Self::Other(_) => None,
            _ => Some(0),
        }
    }
}

impl Conversation {
    /// Reads a frame, whose length is its first four bytes.
    pub(super) fn read(&mut self, stage: Stage, frame: &[u8]) -> Message {
        let mut rest = frame.get(4..).unwrap_or_default();
        let nothing = Message { stage, op: Op::Connect, path: None, xid: 0, error: 0 };
        if !std::mem::replace(&mut self.begun[stage as usize], true) {
            return nothing;
        }
        let xid = int(&mut rest).unwrap_or_default();
        match stage {
            Stage::Request => {
                let op = Op::of(int(&mut rest).unwrap_or_default());
                let path = path(op, rest);
                if Op::of_fixed(xid).is_none() {
                    self.open.insert(xid, (op, path.clone()));
                }
                Message { op, path, xid, ..nothing }
            }
            Stage::Reply => {
                let _zxid = [int(&mut rest), int(&mut rest)];
                let error = int(&mut rest).unwrap_or_default();
                let (op, path) = match Op::of_fixed(xid) {
                    Some(op) => (op, path(op, rest)),
                    None => self.open.remove(&xid).unwrap_or((Op::Other(0), None)),
                };
                Message { op, path, xid, error, ..nothing }
            }
        }
    }
}

fn int(rest: &mut &[u8]) -> Option<i32> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(i32::from_be_bytes(*first))
}

fn path(op: Op, body: &[u8]) -> Option<String> {
    let mut rest = body.get(op.before_path()?..)?;
    let length = usize::try_from(int(&mut rest)?).ok()?;
    String::from_utf8(rest.get(..length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let length = i32::try_from(body.len()).unwrap_or_default();
        [length.to_be_bytes().as_slice(), &body].concat()
    }

    fn begun() -> Conversation {
        let mut conversation = Conversation::default();
        for stage in [Stage::Request, Stage::Reply] {
            assert_eq!(conversation.read(stage, &frame(&[&[0; 40]])).op, Op::Connect);
        }
        conversation
    }

    #[test]
    fn a_reply_has_the_operation_and_the_path_of_its_request() {
        let mut conversation = begun();
        let (list, create) = ([0, 0, 0, 8], [0, 0, 0, 15]);
        conversation.read(Stage::Request, &frame(&[&[0, 0, 0, 1], &create, &[0, 0, 0, 2], b"/a", &[0; 9]]));
        conversation.read(Stage::Request, &frame(&[&[0, 0, 0, 2], &list, &[0, 0, 0, 2], b"/b", &[0]]));
        let zxid = [0; 8];
        let second = conversation.read(Stage::Reply, &frame(&[&[0, 0, 0, 2], &zxid, &[0; 4]]));
        assert_eq!((second.op, second.path.as_deref()), (Op::GetChildren, Some("/b")));
        let no_node = (-101_i32).to_be_bytes();
        let first = conversation.read(Stage::Reply, &frame(&[&[0, 0, 0, 1], &zxid, &no_node]));
        assert_eq!((first.op, first.path.as_deref(), first.error), (Op::Create2, Some("/a"), -101));
        let unasked = conversation.read(Stage::Reply, &frame(&[&[0, 0, 0, 1], &zxid, &[0; 4]]));
        assert_eq!(unasked.op, Op::Other(0), "a reply answers once");
    }

    #[test]
    fn transactions_events_and_pings_are_told_apart() {
        let mut conversation = begun();
        let multi = frame(&[
            &[0, 0, 0, 3],
            &[0, 0, 0, 14],
            &[0, 0, 0, 1, 0, 255, 255, 255, 255],
            &[0, 0, 0, 2],
            b"/m",
        ]);
        let asked = conversation.read(Stage::Request, &multi);
        assert_eq!((asked.op, asked.path.as_deref()), (Op::Multi, Some("/m")));
        let event = frame(&[&[255; 4], &[255; 8], &[0; 4], &[0, 0, 0, 2, 0, 0, 0, 3], &[0, 0, 0, 2], b"/e"]);
        let told = conversation.read(Stage::Reply, &event);
        assert_eq!((told.op, told.path.as_deref()), (Op::Notification, Some("/e")));
        let ping = (-2_i32).to_be_bytes();
        for (stage, rest) in [(Stage::Request, &[0, 0, 0, 11][..]), (Stage::Reply, &[0; 12][..])] {
            assert_eq!(conversation.read(stage, &frame(&[&ping, rest])).op, Op::Ping);
        }
    }

    #[test]
    fn what_is_no_frame_is_no_panic() {
        let mut conversation = begun();
        for bytes in [&[][..], &[0; 3], &[0; 9], &frame(&[&[0, 0, 0, 1], &[0, 0, 0, 4], &[127; 8]])] {
            assert_eq!(conversation.read(Stage::Request, bytes).path, None);
        }
    }
}
