//! The one place where a request and the task that works for it agree on the outcome.
//!
//! Promises that of *commit* and *refuse* only one happens: a request that ran out of time closes the gate before it
//! says "not placed"; the task passes the gate before it sends a commit.

use std::sync::atomic::{AtomicU8, Ordering};

const OPEN: u8 = 0;
const COMMITTING: u8 = 1;
const CLOSED: u8 = 2;

/// Open until the commit is sent or the request is given up, whichever comes first.
#[derive(Debug, Default)]
pub struct Gate(AtomicU8);

impl Gate {
    /// Asks to commit. `false`: the client has been told that nothing was placed; roll back.
    pub fn pass(&self) -> bool {
        self.0.compare_exchange(OPEN, COMMITTING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Gives the request up. `false`: a commit may have been sent; the outcome is open.
    pub fn close(&self) -> bool {
        match self.0.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(state) => state == CLOSED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_first_decides() {
        let committed = Gate::default();
        assert!(committed.pass());
        assert!(!committed.close());
        let given_up = Gate::default();
        assert!(given_up.close());
        assert!(!given_up.pass());
        assert!(given_up.close());
    }
}
