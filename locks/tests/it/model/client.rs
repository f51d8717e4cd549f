//! A contender: one order at a time under the lock, as `acquire`, `Stake` and `Removal` do it.

use zk_locks::turn::Turn;

use super::database::{Progress, Sale, Work};
use super::zookeeper::{Id, Node, Reply, Request};
use super::{Flaw, Lease, LockModel, Recipe, State};

/// Where a contender is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    /// The create was sent.
    Entering,
    /// The reply to the create was lost: is the node there?
    Locating,
    Listing(Node),
    /// About to watch what is in the way.
    Watching {
        own: Node,
        ahead: Node,
        position: usize,
    },
    Waiting {
        own: Node,
        until: Until,
        position: usize,
    },
    /// Holds the lock: the slow part of the order.
    Working(Node),
    /// Holds the lock: at the row. The guard is not looked at any more (decision 0005).
    Writing(Node, Work),
    /// The delete was sent.
    Leaving(Node),
}

/// What a waiter waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Until {
    Gone(Node),
    Changed(Vec<Node>),
    /// For a watch that was never set (a flaw).
    Never,
}

/// What a contender can know of its session while it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Knowledge {
    /// The lease is valid.
    Sure,
    /// The lease has run out while the process was frozen.
    Unaware,
    /// `lost()` has resolved.
    Told,
}

/// How the current order fared with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    Waits,
    Held,
    /// Gave up, crashed, or lost its node or session while waiting.
    Excused,
}

/// The connection: at most one message is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wire {
    Quiet,
    Sent(Request),
    Answered(Reply),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) phase: Phase,
    pub(super) wire: Wire,
    pub(super) order: u8,
    pub(super) knowledge: Knowledge,
    pub(super) fate: Fate,
    pub(super) crashed: bool,
    gave_up: bool,
}

impl Client {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            wire: Wire::Quiet,
            order: 0,
            knowledge: Knowledge::Sure,
            fate: Fate::Waits,
            crashed: false,
            gave_up: false,
        }
    }

    /// The node under which it believes to hold, or would if it knew of no loss.
    pub(super) fn held(&self) -> Option<Node> {
        match self.phase {
            Phase::Working(own) | Phase::Writing(own, _) => Some(own),
            _ => None,
        }
    }

    pub(super) fn believes(&self) -> bool {
        self.held().is_some() && !self.crashed && self.knowledge != Knowledge::Told
    }

    /// The node whose loss it would be told of.
    pub(super) fn guarded(&self) -> Option<Node> {
        match self.phase {
            Phase::Listing(own) | Phase::Watching { own, .. } | Phase::Waiting { own, .. } => Some(own),
            _ => self.held(),
        }
    }

    /// Whether the deadline of its `acquire` can come.
    pub(super) fn is_queueing(&self) -> bool {
        let at_the_start = matches!(self.phase, Phase::Entering | Phase::Locating);
        !self.gave_up && (at_the_start || (self.guarded().is_some() && self.held().is_none()))
    }

    /// Enters a phase, and sends what it asks of the server.
    fn go(&mut self, phase: Phase) {
        self.wire = match &phase {
            Phase::Entering => Wire::Sent(Request::Create),
            Phase::Locating => Wire::Sent(Request::Locate),
            Phase::Listing(_) => Wire::Sent(Request::List),
            Phase::Watching { ahead, .. } => Wire::Sent(Request::Watch(*ahead)),
            Phase::Leaving(own) => Wire::Sent(Request::Delete(*own)),
            Phase::Idle | Phase::Waiting { .. } | Phase::Working(_) | Phase::Writing(..) => Wire::Quiet,
        };
        self.phase = phase;
    }

    pub(super) fn begin(&mut self) {
        self.order += 1;
        self.fate = Fate::Waits;
        self.go(Phase::Entering);
    }

    fn end(&mut self) {
        self.excuse();
        self.gave_up = false;
        self.knowledge = Knowledge::Sure;
        self.go(Phase::Idle);
    }

    fn excuse(&mut self) {
        if self.fate == Fate::Waits {
            self.fate = Fate::Excused;
        }
    }

    fn found(&mut self, own: Node) {
        self.go(if self.gave_up { Phase::Leaving(own) } else { Phase::Listing(own) });
    }

    /// The deadline has come. A node that may have been made has to be found first.
    pub(super) fn give_up(&mut self) {
        self.excuse();
        match self.guarded() {
            Some(own) => self.go(Phase::Leaving(own)),
            None => self.gave_up = true,
        }
    }

    /// A message was lost, and the connection came back: asks again, a create only after a look.
    pub(super) fn lose_message(&mut self, flaw: Option<Flaw>) {
        let again = match self.phase.clone() {
            Phase::Entering if flaw != Some(Flaw::CreatesAgain) => Phase::Locating,
            phase => phase,
        };
        self.go(again);
    }

    /// What has been sent is under way all the same; a transaction that has the row stays open.
    pub(super) fn crash(&mut self, has_the_row: bool) {
        self.crashed = true;
        self.excuse();
        if matches!(self.wire, Wire::Answered(_)) {
            self.wire = Wire::Quiet;
        }
        if !has_the_row {
            self.phase = Phase::Idle;
        }
    }

    /// Hears of the loss of session, lease or node.
    pub(super) fn learn(&mut self, session_lives: bool) {
        match (self.phase.clone(), self.guarded()) {
            (Phase::Writing(..), _) => self.knowledge = Knowledge::Told,
            (_, Some(own)) if session_lives => {
                self.excuse();
                self.go(Phase::Leaving(own));
            }
            _ => self.end(),
        }
    }
}

impl LockModel {
    /// A contender reads the reply to what it asked.
    pub(super) fn read_reply(&self, state: &mut State, id: Id) {
        let client = state.client(id);
        let Wire::Answered(reply) = std::mem::replace(&mut client.wire, Wire::Quiet) else { return };
        match (client.phase.clone(), reply) {
            (_, Reply::Created(own) | Reply::Located(Some(own))) => client.found(own),
            (_, Reply::Located(None)) if client.gave_up => client.end(),
            (_, Reply::Located(None)) => client.go(Phase::Entering),
            (Phase::Listing(own), Reply::Children(children)) => self.look(state, id, own, children),
            (Phase::Watching { own, ahead, position }, Reply::Watched { is_there }) => {
                if is_there {
                    client.go(Phase::Waiting { own, until: Until::Gone(ahead), position });
                } else if self.flaw == Some(Flaw::WatchesWhatIsGone) {
                    client.go(Phase::Waiting { own, until: Until::Never, position });
                } else {
                    self.woken(state, id);
                }
            }
            (_, Reply::Deleted | Reply::SessionOver) => client.end(),
            _ => {}
        }
    }

    /// Whose turn is it? The library's own function decides.
    fn look(&self, state: &mut State, id: Id, own: Node, children: Vec<Node>) {
        let mut names: Vec<&str> = children.iter().map(|node| self.name(*node)).collect();
        names.push("config"); // somebody else's
        match (self.turn)(&names, self.name(own)) {
            Turn::Mine => self.hold(state, id, own),
            Turn::Gone => state.client(id).go(Phase::Leaving(own)),
            Turn::Behind { position, .. } if self.recipe == Recipe::BroadcastReadWrite => {
                let until = Until::Changed(children);
                state.client(id).go(Phase::Waiting { own, until, position });
            }
            Turn::Behind { node, position } => {
                let ahead = children.into_iter().find(|child| self.name(*child) == node);
                if let Some(ahead) = ahead {
                    state.client(id).go(Phase::Watching { own, ahead, position });
                }
            }
        }
    }

    /// What was in the way is gone. Whoever was second in a queue of writers is first now; others look again.
    pub(super) fn woken(&self, state: &mut State, id: Id) {
        let client = state.client(id);
        let (Phase::Watching { own, position, .. } | Phase::Waiting { own, position, .. }) = client.phase
        else {
            return;
        };
        let is_next = position == 1 && self.recipe == Recipe::FairMutex;
        if is_next || self.flaw == Some(Flaw::WokenMeansMine) {
            self.hold(state, id, own);
        } else {
            client.go(Phase::Listing(own));
        }
    }

    /// Holds, if the lease covers it.
    fn hold(&self, state: &mut State, id: Id, own: Node) {
        let covered = state.zookeeper.lives(id);
        let client = state.client(id);
        if self.lease == Lease::Kept && !covered {
            client.end();
        } else {
            client.fate = Fate::Held;
            client.go(Phase::Working(own));
        }
    }

    /// The slow part is through. Readers write nothing.
    pub(super) fn finish_work(&self, state: &mut State, id: Id) {
        let reads = self.reads(id);
        let client = state.client(id);
        if let Phase::Working(own) = client.phase {
            client.go(if reads { Phase::Leaving(own) } else { Phase::Writing(own, Work::NotBegun) });
        }
    }

    /// The next statement of the transaction.
    pub(super) fn run_statement(&self, state: &mut State, id: Id) {
        let Phase::Writing(own, work) = state.client(id).phase else { return };
        let progress = state.database.run(Sale { by: id, token: own.born }, self.writer, work);
        let client = state.client(id);
        match progress {
            Progress::Further(work) => client.phase = Phase::Writing(own, work),
            Progress::Over if client.crashed => client.phase = Phase::Idle,
            Progress::Over => client.go(Phase::Leaving(own)),
        }
    }

    /// The database ends a transaction that took too long, or whose client is gone.
    pub(super) fn roll_back(state: &mut State, id: Id) {
        state.database.roll_back();
        let client = state.client(id);
        match client.phase {
            Phase::Writing(own, _) if !client.crashed => client.go(Phase::Leaving(own)),
            _ => client.phase = Phase::Idle,
        }
    }
}
