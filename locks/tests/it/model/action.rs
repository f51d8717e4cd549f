//! What can happen next, and what it does.

use std::fmt;

use super::client::{Client, Knowledge, Phase, Until, Wire};
use super::database::Work;
use super::zookeeper::{Id, Request};
use super::{Fault, Flaw, Lease, LockModel, State};

/// One step of one contender, or of somebody else at its expense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Begins(Id),
    ServerAnswers(Id, Request),
    ReadsReply(Id),
    Wakes(Id),
    FinishesWork(Id),
    RunsStatement(Id, Work),
    /// Is told that its session, its node or its lease is lost.
    Learns(Id),
    LosesMessage(Id),
    GivesUp(Id),
    Crashes(Id),
    /// A frozen process does not notice.
    LeaseRunsOut(Id, Notices),
    SessionExpires(Id),
    NodeRemoved(Id),
    RolledBack(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notices {
    Yes,
    No,
}

impl LockModel {
    /// What happens without any fault.
    pub(super) fn normal_actions(&self, state: &State, id: Id, actions: &mut Vec<Action>) {
        let client = &state.clients[usize::from(id)];
        if let Wire::Sent(request) = client.wire {
            actions.push(Action::ServerAnswers(id, request));
        }
        if client.crashed {
            return after_a_crash(state, id, actions);
        }
        if matches!(client.wire, Wire::Answered(_)) {
            actions.push(Action::ReadsReply(id));
        }
        match &client.phase {
            Phase::Idle if client.order < self.orders => actions.push(Action::Begins(id)),
            Phase::Waiting { until, .. } if has_come(state, until) => actions.push(Action::Wakes(id)),
            Phase::Working(_) => actions.push(Action::FinishesWork(id)),
            Phase::Writing(_, work) if !state.database.blocks(id, self.writer, *work) => {
                actions.push(Action::RunsStatement(id, *work));
            }
            _ => {}
        }
        if has_lost(state, id, client) {
            actions.push(Action::Learns(id));
        }
        // Not before its lease has run out, which was a fault.
        if self.lease == Lease::Kept
            && client.held().is_some()
            && client.knowledge != Knowledge::Sure
            && state.zookeeper.lives(id)
        {
            actions.push(Action::SessionExpires(id));
        }
    }

    pub(super) fn faulty_actions(&self, state: &State, id: Id, actions: &mut Vec<Action>) {
        let client = &state.clients[usize::from(id)];
        if state.faults_left == 0 || client.crashed || client.phase == Phase::Idle {
            return;
        }
        let guarded = client.guarded();
        let mut offer = |fault, possible: bool, action| {
            if possible && self.faults.contains(&fault) {
                actions.push(action);
            }
        };
        offer(Fault::LosesMessage, client.wire != Wire::Quiet, Action::LosesMessage(id));
        offer(Fault::GivesUp, client.is_queueing(), Action::GivesUp(id));
        offer(Fault::Crashes, true, Action::Crashes(id));
        let stands = guarded.is_some_and(|node| state.zookeeper.stands(node));
        offer(Fault::NodeRemoved, stands, Action::NodeRemoved(id));
        offer(Fault::RolledBack, state.database.row_lock == Some(id), Action::RolledBack(id));
        let leased = self.lease == Lease::Kept && client.held().is_some();
        let may_expire = !leased || self.flaw == Some(Flaw::LeaseTooLong);
        offer(Fault::Expires, may_expire && state.zookeeper.lives(id), Action::SessionExpires(id));
        let valid = leased && client.knowledge == Knowledge::Sure;
        offer(Fault::Expires, valid, Action::LeaseRunsOut(id, Notices::Yes));
        offer(Fault::Expires, valid, Action::LeaseRunsOut(id, Notices::No));
    }

    /// Whether an action takes one from the budget: what befalls the living.
    fn is_fault(&self, state: &State, action: Action) -> bool {
        match action {
            Action::LosesMessage(_)
            | Action::GivesUp(_)
            | Action::Crashes(_)
            | Action::LeaseRunsOut(..)
            | Action::NodeRemoved(_) => true,
            Action::RolledBack(id) => !state.clients[usize::from(id)].crashed,
            Action::SessionExpires(id) => {
                let client = &state.clients[usize::from(id)];
                let paid = self.lease == Lease::Kept && client.held().is_some();
                !client.crashed && !paid
            }
            _ => false,
        }
    }

    pub(super) fn run(&self, state: &mut State, action: Action) {
        state.faults_left -= u8::from(self.is_fault(state, action));
        match action {
            Action::Begins(id) => {
                state.zookeeper.open_session(id);
                state.client(id).begin();
            }
            Action::ServerAnswers(id, _) => answer(state, id),
            Action::ReadsReply(id) => self.read_reply(state, id),
            Action::Wakes(id) => self.woken(state, id),
            Action::FinishesWork(id) => self.finish_work(state, id),
            Action::RunsStatement(id, _) => self.run_statement(state, id),
            Action::Learns(id) => {
                let lives = state.zookeeper.lives(id);
                state.client(id).learn(lives);
            }
            Action::LosesMessage(id) => state.client(id).lose_message(self.flaw),
            Action::GivesUp(id) => state.client(id).give_up(),
            Action::Crashes(id) => {
                let has_the_row = state.database.row_lock == Some(id);
                state.client(id).crash(has_the_row);
            }
            Action::LeaseRunsOut(id, Notices::Yes) => state.client(id).learn(true),
            Action::LeaseRunsOut(id, Notices::No) => state.client(id).knowledge = Knowledge::Unaware,
            Action::SessionExpires(id) => state.zookeeper.expire(id),
            Action::NodeRemoved(id) => {
                if let Some(node) = state.clients[usize::from(id)].guarded() {
                    state.zookeeper.remove(node);
                }
            }
            Action::RolledBack(id) => Self::roll_back(state, id),
        }
    }
}

/// Its commit may be under way; the database ends its transaction, ZooKeeper its session.
fn after_a_crash(state: &State, id: Id, actions: &mut Vec<Action>) {
    let client = &state.clients[usize::from(id)];
    if let Phase::Writing(_, work) = client.phase {
        actions.push(Action::RolledBack(id));
        if matches!(work, Work::Written { .. }) {
            actions.push(Action::RunsStatement(id, work));
        }
    }
    let leaves_a_node = state.zookeeper.directory.iter().any(|node| node.owner == id);
    if state.zookeeper.lives(id) && (leaves_a_node || client.wire != Wire::Quiet) {
        actions.push(Action::SessionExpires(id));
    }
}

fn answer(state: &mut State, id: Id) {
    let client = &mut state.clients[usize::from(id)];
    if let Wire::Sent(request) = std::mem::replace(&mut client.wire, Wire::Quiet) {
        let reply = state.zookeeper.answer(id, client.order, request);
        if !client.crashed {
            client.wire = Wire::Answered(reply);
        }
    }
}

/// Whether a watch has fired. (A directory that changed and changed back has told so, too; no name comes twice,
/// so that cannot happen.)
fn has_come(state: &State, until: &Until) -> bool {
    match until {
        Until::Gone(node) => !state.zookeeper.stands(*node),
        Until::Changed(seen) => state.zookeeper.directory != *seen,
        Until::Never => false,
    }
}

/// Whether there is a loss that it has not been told of.
fn has_lost(state: &State, id: Id, client: &Client) -> bool {
    let Some(own) = client.guarded() else { return false };
    let lost = !state.zookeeper.lives(id) || !state.zookeeper.stands(own);
    match client.knowledge {
        Knowledge::Sure => lost,
        Knowledge::Unaware => true,
        Knowledge::Told => false,
    }
}

/// What a contender is called.
pub(super) fn letter(id: Id) -> char {
    char::from(b'A' + id)
}

/// In words, for counterexamples.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, what) = match self {
            Self::Begins(id) => (id, "begins an order: sends a create"),
            Self::ServerAnswers(id, Request::Create) => (id, "'s create is answered"),
            Self::ServerAnswers(id, Request::Locate) => (id, "'s search for its node is answered"),
            Self::ServerAnswers(id, Request::List) => (id, "'s listing is answered"),
            Self::ServerAnswers(id, Request::Watch(_)) => (id, "'s watch is answered"),
            Self::ServerAnswers(id, Request::Delete(_)) => (id, "'s delete is answered"),
            Self::ReadsReply(id) => (id, "reads the reply"),
            Self::Wakes(id) => (id, "hears that what was in the way is gone"),
            Self::FinishesWork(id) => (id, "is through with the slow part"),
            Self::RunsStatement(id, Work::NotBegun) => (id, "reads the row"),
            Self::RunsStatement(id, Work::Read { .. }) => (id, "writes, if it may"),
            Self::RunsStatement(id, Work::Written { .. }) => (id, "commits"),
            Self::Learns(id) => (id, "is told of its loss"),
            Self::LosesMessage(id) => (id, "'s request or its reply is lost"),
            Self::GivesUp(id) => (id, "gives up at its deadline"),
            Self::Crashes(id) => (id, "crashes"),
            Self::LeaseRunsOut(id, Notices::Yes) => (id, "'s lease runs out, and it knows"),
            Self::LeaseRunsOut(id, Notices::No) => (id, "'s lease runs out while it is frozen"),
            Self::SessionExpires(id) => (id, "'s session expires"),
            Self::NodeRemoved(id) => (id, "'s node is deleted by an outsider"),
            Self::RolledBack(id) => (id, "'s transaction is rolled back by the database"),
        };
        let space = if what.starts_with('\'') { "" } else { " " };
        write!(f, "{}{space}{what}", letter(*id))
    }
}
