//! A model of contenders for one lock and one row, searched state by state with stateright.
//!
//! The library's own [`turn`](zk_locks::turn::turn) decides whose turn it is, on names as the server makes them,
//! across the wrap of its counter. The rest is written again here, as small as it can be and still go wrong:
//!
//! - A contender runs the engine of `acquire`: create, list, watch what is in the way, look again; a lost reply
//!   to a create is resolved by a look; every way out is one removal.
//! - Any message may be late, or lost with or without having been applied; any contender may crash, give up, or
//!   take as long as it likes before its next step, which is what a paused process looks like to all others.
//!   A session may end at any time, and its client hears of it later or never.
//! - Time is left out. [`Lease::None`] promises nothing at all, and the fenced writer has to live with that;
//!   [`Lease::Kept`] puts the lease's promise (decision 0003) in its place.
//! - Left out, too: several servers (a late reply stands for a server that lags), requests of a session that
//!   overtake each other (ZooKeeper does not let them), directories that vanish, several rows, orders of more
//!   than one unit, statements that fail for other reasons than the fence, and loss of ZooKeeper's data.
//!
//! Faults, orders and contenders are bounded, so that every run ends. See `properties` for what is asked.

mod action;
mod client;
mod database;
mod flaws;
mod properties;
mod search;
mod sound;
mod zookeeper;

use stateright::{Model, Property};
use uuid::Uuid;
use zk_locks::Access;
use zk_locks::turn::Turn;

use action::Action;
use client::Client;
use database::{Database, Writer};
use zookeeper::{Id, Node, ZooKeeper};

/// What can go wrong; each time takes one from the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    LosesMessage,
    GivesUp,
    Crashes,
    /// The session ends though its client lives.
    Expires,
    /// An outsider deletes a node.
    NodeRemoved,
    /// The database ends a live client's transaction.
    RolledBack,
}

/// What is known of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    /// Nothing.
    None,
    /// A holder's session does not end before its lease has run out, and whoever is awake when that happens
    /// knows at once.
    Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recipe {
    FairMutex,
    FairReadWrite,
    BroadcastReadWrite,
}

/// Faults of a library that this one does not have: each has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A lost reply to a create is answered with another create.
    CreatesAgain,
    /// A waiter that wakes does not look again, however many were in its way.
    WokenMeansMine,
    /// A watch on a node that is gone already is waited for.
    WatchesWhatIsGone,
    /// The session may end while the lease is still valid.
    LeaseTooLong,
}

type TurnFunction = fn(&[&str], &str) -> Turn;

/// The library's.
fn library_turn(children: &[&str], own: &str) -> Turn {
    zk_locks::turn::turn(children, own)
}

/// Contenders for one lock, the row it protects, and what may befall them.
#[derive(Clone)]
struct LockModel {
    recipe: Recipe,
    /// What each contender wants.
    contenders: Vec<Access>,
    /// How many orders each of them has, one after the other.
    orders: u8,
    stock: u8,
    writer: Writer,
    lease: Lease,
    faults: &'static [Fault],
    faults_max: u8,
    turn: TurnFunction,
    flaw: Option<Flaw>,
    /// Makes the number of steps part of the state, so that no two states of one run are the same.
    counts_steps: bool,
    names: Vec<String>,
}

/// All there is to know at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    zookeeper: ZooKeeper,
    clients: Vec<Client>,
    database: Database,
    faults_left: u8,
    steps: u16,
}

impl State {
    fn client(&mut self, id: Id) -> &mut Client {
        &mut self.clients[usize::from(id)]
    }

    /// The contenders with their numbers.
    fn each(&self) -> impl Iterator<Item = (Id, &Client)> {
        (0..).zip(&self.clients)
    }
}

impl LockModel {
    fn new(recipe: Recipe, contenders: &[Access]) -> Self {
        let mut model = Self {
            recipe,
            contenders: contenders.to_vec(),
            orders: 1,
            stock: 10,
            writer: Writer::Fenced,
            lease: Lease::None,
            faults: &[],
            faults_max: 0,
            turn: library_turn,
            flaw: None,
            counts_steps: false,
            names: Vec::new(),
        };
        model.names = model.all_names();
        model
    }

    fn reads(&self, id: Id) -> bool {
        self.contenders[usize::from(id)] == Access::Read
    }

    /// How many contenders write.
    fn writers(&self) -> usize {
        self.contenders.iter().filter(|access| **access == Access::Write).count()
    }

    /// How many units all their orders are for.
    fn wanted(&self) -> usize {
        self.writers() * usize::from(self.orders)
    }

    const ORDERS_MAX: u8 = 2;
    const CREATES_MAX: u8 = 16;

    /// Names of all nodes that there can be, in the order of [`Self::name`].
    fn all_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (owner, access) in (0u8..).zip(&self.contenders) {
            for order in 1..=Self::ORDERS_MAX {
                for born in 1..=Self::CREATES_MAX {
                    names.push(self.make_name(*access, Node { owner, order, born }));
                }
            }
        }
        names
    }

    /// As `Role::node_name` and the server make it. The counter wraps after the first node, and the GUIDs sort
    /// the other way round than the nodes are likely to come.
    fn make_name(&self, access: Access, node: Node) -> String {
        let guid = Uuid::from_u128(u128::MAX - (u128::from(node.owner) << 64) - u128::from(node.order));
        let sequence = (i32::MAX - 1).wrapping_add(i32::from(node.born));
        match (self.recipe, access) {
            (Recipe::FairMutex, _) => format!("_c_{guid}-lock-{sequence:010}"),
            (Recipe::FairReadWrite, Access::Read) => format!("_c_{guid}-__READ__{sequence:010}"),
            (Recipe::FairReadWrite, Access::Write) => format!("_c_{guid}-__WRIT__{sequence:010}"),
            (Recipe::BroadcastReadWrite, Access::Read) => format!("order-1.{guid}-R-{sequence:010}"),
            (Recipe::BroadcastReadWrite, Access::Write) => format!("order-1.{guid}-W-{sequence:010}"),
        }
    }

    fn name(&self, node: Node) -> &str {
        let place = usize::from(node.owner) * usize::from(Self::ORDERS_MAX) + usize::from(node.order - 1);
        &self.names[place * usize::from(Self::CREATES_MAX) + usize::from(node.born - 1)]
    }
}

impl Model for LockModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            zookeeper: ZooKeeper::new(self.contenders.len()),
            clients: vec![Client::new(); self.contenders.len()],
            database: Database::new(self.stock),
            faults_left: self.faults_max,
            steps: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Of the shortest counterexamples stateright keeps the last: A begins it.
        let each: Vec<(Id, &Client)> = state.each().collect();
        for (id, _) in each.into_iter().rev() {
            self.normal_actions(state, id, actions);
            self.faulty_actions(state, id, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.run(&mut next, action);
        next.steps += u16::from(self.counts_steps);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}
