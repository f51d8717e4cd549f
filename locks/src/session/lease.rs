//! The lease: for how long this process may believe that its session lives.
//!
//! Promises to run out, on the holder's own clock, before the server can have given the session's locks away.
//! A read or a ping proves nothing (a server cut off from its leader goes on answering both), so the lease runs
//! from the *sending* of the last write that was answered. See `docs/decisions/0003-lease-by-writes.md`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::BootInstant;

/// The part of the negotiated timeout that the lease lasts.
///
/// The leader counts a session's timeout from the last activity *it* heard of. A server passes on what it saw
/// with the leader's pings, every half tick; the timeout is two ticks at least, so that may be a quarter of it
/// before our write was sent. Our client is never silent for longer than a fifth. Two thirds leave a twelfth
/// of the timeout for clocks that run at different speeds.
const LEASE_NUMERATOR: u32 = 2;
const LEASE_DENOMINATOR: u32 = 3;

/// Length of the lease for a negotiated session timeout.
pub(crate) fn length(negotiated: Duration) -> Duration {
    negotiated * LEASE_NUMERATOR / LEASE_DENOMINATOR
}

/// The state of a lease, without a clock of its own.
#[derive(Clone, Copy, Debug)]
struct Lease {
    length: Duration,
    proved_at: BootInstant,
    /// How often it has run out. A guard that was given under one count is lost under the next.
    lapses: u64,
    lapsed: bool,
}

impl Lease {
    fn valid_until(&self) -> BootInstant {
        self.proved_at + self.length
    }

    /// Whether it is valid at `now`; a look that finds it run out makes that final.
    fn look(&mut self, now: BootInstant) -> bool {
        let valid = now < self.valid_until();
        if !valid && !self.lapsed {
            self.lapsed = true;
            self.lapses += 1;
        }
        valid
    }

    /// A write sent at `sent` was answered, and the answer was read at `now`.
    fn prove(&mut self, sent: BootInstant, now: BootInstant) {
        // Before the new proof counts: what ran out while nobody looked has run out all the same.
        self.look(now);
        self.proved_at = self.proved_at.max(sent);
        if now < self.valid_until() {
            self.lapsed = false;
        }
    }
}

/// The lease of one session, shared by the tasks that renew, watch and rely on it.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    lease: Mutex<Lease>,
    lapses: watch::Sender<u64>,
    proved: watch::Sender<BootInstant>,
}

impl LeaseKeeper {
    /// A lease that has yet to be proved by a first write.
    pub(crate) fn new(negotiated: Duration) -> Self {
        // A lease proved "at boot" has run out already, which is the safe start.
        let never = BootInstant::default();
        let lease = Lease { length: length(negotiated), proved_at: never, lapses: 0, lapsed: true };
        Self { lease: Mutex::new(lease), lapses: watch::Sender::new(0), proved: watch::Sender::new(never) }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Lease) -> T) -> T {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut lease);
        let lapses = lease.lapses;
        drop(lease);
        self.lapses.send_if_modified(|seen| std::mem::replace(seen, lapses) != lapses);
        result
    }

    /// A write sent at `sent` was answered just now.
    pub(crate) fn prove(&self, sent: BootInstant) {
        self.with(|lease| lease.prove(sent, BootInstant::now()));
        self.proved.send_modify(|proved| *proved = (*proved).max(sent));
    }

    /// The count of lapses under which a guard may be given now; `None` while the lease is not valid.
    pub(crate) fn grant(&self) -> Option<u64> {
        self.with(|lease| lease.look(BootInstant::now()).then_some(lease.lapses))
    }

    /// Whether a guard given under `lapses` is still covered.
    pub(crate) fn covers(&self, lapses: u64) -> bool {
        self.grant() == Some(lapses)
    }

    /// When the last answered write was sent.
    pub(crate) fn proved_at(&self) -> BootInstant {
        self.with(|lease| lease.proved_at)
    }

    /// Time until the lease runs out; zero if it has.
    pub(crate) fn remaining(&self) -> Duration {
        self.with(|lease| lease.valid_until().saturating_since(BootInstant::now()))
    }

    /// Changes whenever the lease has run out once more.
    pub(crate) fn watch_lapses(&self) -> watch::Receiver<u64> {
        self.lapses.subscribe()
    }

    /// Changes whenever a write was answered.
    pub(crate) fn watch_proofs(&self) -> watch::Receiver<BootInstant> {
        self.proved.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(6);
    const LENGTH: Duration = Duration::from_secs(4);

    fn at(seconds: u64) -> BootInstant {
        BootInstant::at(Duration::from_secs(seconds))
    }

    fn proved(seconds: u64) -> Lease {
        Lease { length: length(TIMEOUT), proved_at: at(seconds), lapses: 0, lapsed: false }
    }

    #[test]
    fn it_runs_from_the_sending_and_not_from_the_answer() {
        let mut lease = proved(100);
        lease.prove(at(102), at(103));
        assert_eq!(lease.valid_until(), at(102) + LENGTH);
        assert!(lease.look(at(105)));
        assert!(!lease.look(at(106)));
    }

    #[test]
    fn an_answer_that_comes_too_late_does_not_undo_the_lapse() {
        let mut lease = proved(100);
        lease.prove(at(103), at(104) + Duration::from_millis(1));
        assert_eq!(lease.lapses, 1, "nobody looked at 104 s, and it had run out all the same");
        assert!(lease.look(at(105)), "the new proof counts for those who come now");
    }

    #[test]
    fn answers_out_of_order_do_not_shorten_it() {
        let mut lease = proved(100);
        lease.prove(at(103), at(103));
        lease.prove(at(101), at(103));
        assert_eq!(lease.valid_until(), at(103) + LENGTH);
    }

    #[test]
    fn each_lapse_is_counted_once() {
        let mut lease = proved(100);
        for look in 104..110 {
            assert!(!lease.look(at(look)));
        }
        assert_eq!(lease.lapses, 1);
        lease.prove(at(111), at(111));
        assert!(!lease.look(at(120)));
        assert_eq!(lease.lapses, 2);
    }

    /// Case 44: the boot-time clock moved by an hour while the machine slept.
    #[test]
    fn an_hour_of_sleep_ends_it_at_the_first_look() {
        let mut lease = proved(100);
        assert!(lease.look(at(101)));
        assert!(!lease.look(at(101 + 3600)));
        lease.prove(at(101), at(101 + 3600));
        assert!(!lease.look(at(101 + 3600)), "an answer to a write sent before the sleep proves nothing");
    }

    #[test]
    fn a_new_keeper_grants_nothing_before_its_first_proof() {
        let keeper = LeaseKeeper::new(TIMEOUT);
        assert_eq!(keeper.grant(), None);
        keeper.prove(BootInstant::now());
        assert_eq!(keeper.grant(), Some(0));
    }
}
