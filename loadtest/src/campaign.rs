//! What the users of one run share: whose turn it is, when the run is over, and how far it is.
//!
//! Promises: no more orders than the limit and none after the deadline; once sold out, exactly the
//! tail's number of further orders; the reason of the end is the first one.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{
    client::{Ask, Attempt, Client},
    history::{Op, Outcome},
    pursue::{Patience, Pursuit},
};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Sold out, and the tail was sent.
    SoldOut,
    /// As many steps as allowed were taken.
    Count,
    /// The duration is over.
    Time,
    /// Ctrl-C.
    Interrupted,
    /// The history could not be written.
    History,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SoldOut => "sold out, tail done",
            Self::Count => "limit of the count",
            Self::Time => "duration over",
            Self::Interrupted => "interrupted",
            Self::History => "history not writable",
        })
    }
}

/// Bounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Steps of all users together, the tail not counted.
    pub steps_max: u64,
    /// Further orders once sold out; `None` when a run does not end by selling out.
    pub tail: Option<u64>,
    /// Attempts per request.
    pub attempts_max: u32,
    /// No step and no attempt begins after it, but for the final pass.
    pub deadline: Instant,
}

/// Counts so far, of orders by key unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests of any kind, retries included.
    pub requests: u64,
    /// Requests after the first with the same key.
    pub retries: u64,
    /// Acknowledged.
    pub accepted: u64,
    /// Refused for lack of stock.
    pub out_of_stock: u64,
    /// Given up with nothing placed.
    pub failed: u64,
    /// Given up without knowing.
    pub unknown: u64,
    /// Steps under way.
    pub in_flight: u64,
    /// Whether the SKU was seen sold out; only where that ends the run.
    pub sold_out: bool,
}

/// A request that may have been applied; the final pass settles it.
#[derive(Debug, Clone)]
pub struct Unsettled {
    /// What was asked.
    pub ask: Ask,
    /// The next attempt.
    pub next: Attempt,
}

#[derive(Debug)]
struct State {
    ended: Option<Ended>,
    steps_left: u64,
    tail_left: u64,
    progress: Progress,
    unsettled: Vec<Unsettled>,
}

/// Shared by the users of one run.
#[derive(Debug)]
pub struct Campaign {
    client: Client,
    limits: Limits,
    state: Mutex<State>,
}

impl Campaign {
    /// A run that has not begun.
    pub fn new(client: Client, limits: Limits) -> Self {
        let state = State {
            ended: None,
            steps_left: limits.steps_max,
            tail_left: limits.tail.unwrap_or_default(),
            progress: Progress::default(),
            unsettled: Vec::new(),
        };
        Self { client, limits, state: Mutex::new(state) }
    }

    /// Sends the requests.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// How long a step may retry.
    pub const fn patience(&self) -> Patience {
        Patience { attempts_max: self.limits.attempts_max, until: self.limits.deadline }
    }

    /// Asks for a turn: true means take one step and report it with [`Campaign::finish_step`]; false
    /// means that the run is over.
    pub fn take_turn(&self) -> bool {
        let mut state = self.state();
        if state.ended.is_none() && Instant::now() >= self.limits.deadline {
            state.ended = Some(Ended::Time);
        }
        if state.ended.is_some() {
            return false;
        }
        let tail = state.progress.sold_out;
        let left = if tail { &mut state.tail_left } else { &mut state.steps_left };
        if *left == 0 {
            state.ended = Some(if tail { Ended::SoldOut } else { Ended::Count });
            return false;
        }
        *left -= 1;
        state.progress.in_flight += 1;
        true
    }

    /// Counts a pursued request of a step, and keeps it for the final pass if it is unsettled.
    pub fn count(&self, ask: &Ask, pursuit: &Pursuit) {
        let mut state = self.state();
        let attempts = pursuit.attempts.len() as u64;
        state.progress.requests += attempts;
        state.progress.retries += attempts - 1;
        let last = pursuit.last();
        let unsettled = pursuit.is_unsettled() && matches!(ask.op(), Op::Order | Op::Cancel);
        if unsettled {
            let next = pursuit.attempts.iter().map(|record| record.attempt).max().unwrap_or(last.attempt) + 1;
            let next = Attempt { user: last.user, host: last.user + pursuit.attempts.len(), number: next };
            state.unsettled.push(Unsettled { ask: ask.clone(), next });
        }
        if ask.op() != Op::Order {
            return;
        }
        let decided = |wanted| pursuit.attempts.iter().any(|record| record.outcome() == wanted);
        if decided(Outcome::Accepted) {
            state.progress.accepted += 1;
        } else if decided(Outcome::OutOfStock) {
            state.progress.out_of_stock += 1;
            let ordered: i64 = last.lines.iter().map(|line| line.quantity).sum();
            let none_left = last.available.map_or(ordered == 1, |available| available == 0);
            state.progress.sold_out |= self.limits.tail.is_some() && none_left;
        } else if unsettled {
            state.progress.unknown += 1;
        } else {
            state.progress.failed += 1;
        }
    }

    /// Ends a step that [`Campaign::take_turn`] allowed.
    pub fn finish_step(&self) {
        self.state().progress.in_flight -= 1;
    }

    /// Ends the run, unless it has ended already.
    pub fn stop(&self, reason: Ended) {
        self.state().ended.get_or_insert(reason);
    }

    /// Why the run ended, if it did.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended
    }

    /// Counts so far.
    pub fn progress(&self) -> Progress {
        self.state().progress
    }

    /// Takes what is left to settle.
    pub fn take_unsettled(&self) -> Vec<Unsettled> {
        std::mem::take(&mut self.state().unsettled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
