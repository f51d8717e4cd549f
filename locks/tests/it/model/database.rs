//! The protected row, and four ways to change it.
//!
//! Each statement is one step; a transaction that has written has the row to itself until it ends, and what it
//! wrote is seen by others only when it commits (`READ COMMITTED`). Every order deducts one.

use super::zookeeper::Id;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// `UPDATE … SET fence = token WHERE fence <= token RETURNING on_hand`, then the write, then the commit.
    Fenced,
    /// `SELECT on_hand FOR UPDATE`, then the write, then the commit: the row is taken with the read, without a token.
    LockedRow,
    /// `SELECT on_hand`, then `UPDATE … SET on_hand = …, fence = token WHERE fence <= token`, then the commit.
    FencedAtTheWrite,
    /// `SELECT on_hand`, then `UPDATE … SET on_hand = …`, then the commit.
    Plain,
}

impl Writer {
    pub(super) fn has_a_fence(self) -> bool {
        matches!(self, Self::Fenced | Self::FencedAtTheWrite)
    }

    fn reads_with_the_row(self) -> bool {
        matches!(self, Self::Fenced | Self::LockedRow)
    }
}

/// How far a contender has got with the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    NotBegun,
    Read { on_hand: u8 },
    Written { on_hand: u8 },
}

/// What a statement leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Further(Work),
    Over,
}

/// A deduction that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sale {
    pub(super) by: Id,
    pub(super) token: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Database {
    pub(super) on_hand: u8,
    pub(super) fence: u8,
    /// Whose transaction has the row.
    pub(super) row_lock: Option<Id>,
    pub(super) accepted: Vec<Sale>,
    pub(super) refused: bool,
    pub(super) sold_out: bool,
}

impl Database {
    pub(super) fn new(on_hand: u8) -> Self {
        Self { on_hand, fence: 0, row_lock: None, accepted: Vec::new(), refused: false, sold_out: false }
    }

    /// Whether the next statement waits for another's transaction.
    pub(super) fn blocks(&self, id: Id, writer: Writer, work: Work) -> bool {
        let takes_the_row = match work {
            Work::NotBegun => writer.reads_with_the_row(),
            Work::Read { .. } => !writer.reads_with_the_row(),
            Work::Written { .. } => false,
        };
        takes_the_row && self.row_lock.is_some_and(|holder| holder != id)
    }

    /// Runs the next statement.
    pub(super) fn run(&mut self, sale: Sale, writer: Writer, work: Work) -> Progress {
        match (work, writer) {
            (Work::NotBegun, Writer::Fenced) if self.fence > sale.token => self.refuse(),
            (Work::NotBegun, _) => {
                if writer.reads_with_the_row() {
                    self.row_lock = Some(sale.by);
                }
                Progress::Further(Work::Read { on_hand: self.on_hand })
            }
            (Work::Read { on_hand: 0 }, _) => {
                self.sold_out = true;
                self.commit(sale, writer)
            }
            (Work::Read { .. }, Writer::FencedAtTheWrite) if self.fence > sale.token => self.refuse(),
            (Work::Read { on_hand }, _) => {
                self.row_lock = Some(sale.by);
                Progress::Further(Work::Written { on_hand: on_hand - 1 })
            }
            (Work::Written { on_hand }, _) => {
                self.on_hand = on_hand;
                self.accepted.push(sale);
                self.commit(sale, writer)
            }
        }
    }

    fn refuse(&mut self) -> Progress {
        self.refused = true;
        Progress::Over
    }

    /// With the fence's new value, which nobody could see before: the row was locked.
    fn commit(&mut self, sale: Sale, writer: Writer) -> Progress {
        if self.row_lock == Some(sale.by) {
            if writer.has_a_fence() {
                self.fence = sale.token;
            }
            self.row_lock = None;
        }
        Progress::Over
    }

    pub(super) fn roll_back(&mut self) {
        self.row_lock = None;
    }
}
