//! The server: one lock directory, and the sessions that its nodes belong to.
//!
//! A request is answered in one step. Its reply may be read at any later time, which is also what a server that
//! lags behind its leader looks like to a client.

/// A contender, by its number.
pub(super) type Id = u8;

/// A contender's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) owner: Id,
    /// Which of its owner's orders it was made for: together they are the GUID.
    pub(super) order: u8,
    /// Its place among all creates: the `czxid`, hence the token, and what the sequence number is made of.
    pub(super) born: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Request {
    Create,
    /// `sync` and a listing, searched for the own GUID.
    Locate,
    List,
    /// A read that leaves a watch if the node is there.
    Watch(Node),
    Delete(Node),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    Created(Node),
    Located(Option<Node>),
    Children(Vec<Node>),
    Watched {
        is_there: bool,
    },
    /// Or it was not there any more.
    Deleted,
    SessionOver,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ZooKeeper {
    pub(super) directory: Vec<Node>,
    /// Whether the session of each contender lives.
    pub(super) sessions: Vec<bool>,
    created: u8,
}

impl ZooKeeper {
    pub(super) fn new(contenders: usize) -> Self {
        Self { directory: Vec::new(), sessions: vec![true; contenders], created: 0 }
    }

    pub(super) fn lives(&self, id: Id) -> bool {
        self.sessions[usize::from(id)]
    }

    pub(super) fn stands(&self, node: Node) -> bool {
        self.directory.contains(&node)
    }

    pub(super) fn answer(&mut self, from: Id, order: u8, request: Request) -> Reply {
        if !self.lives(from) {
            return Reply::SessionOver;
        }
        match request {
            Request::Create => Reply::Created(self.create(from, order)),
            Request::Locate => {
                let own = |node: &&Node| node.owner == from && node.order == order;
                Reply::Located(self.directory.iter().find(own).copied())
            }
            Request::List => Reply::Children(self.directory.clone()),
            Request::Watch(node) => Reply::Watched { is_there: self.stands(node) },
            Request::Delete(node) => {
                self.remove(node);
                Reply::Deleted
            }
        }
    }

    fn create(&mut self, owner: Id, order: u8) -> Node {
        self.created += 1;
        let node = Node { owner, order, born: self.created };
        self.directory.push(node);
        node
    }

    pub(super) fn remove(&mut self, node: Node) {
        self.directory.retain(|other| *other != node);
    }

    /// The session is over, and its nodes are gone.
    pub(super) fn expire(&mut self, id: Id) {
        self.sessions[usize::from(id)] = false;
        self.directory.retain(|node| node.owner != id);
    }

    pub(super) fn open_session(&mut self, id: Id) {
        self.sessions[usize::from(id)] = true;
    }
}
