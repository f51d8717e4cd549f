//! Experiments as data: what is run, and what is expected of it.
//!
//! Each is a claim. A claim that danger exists ("without a lock, stock is oversold") is tested by finding it, so the
//! verdict expected of its audit is *invalid*. Nothing here starts anything.

mod expected;
mod fault;

use std::time::Duration;

pub use expected::{Expectation, NoClaim, possible};
pub use fault::{FaultKind, Faults, ParseFaultError};

/// One run: everything that decides it.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name in the report, also of its database, its chroot and its instances.
    pub name: String,
    /// Lock mode of the service.
    pub mode: String,
    /// Writer of the service.
    pub writer: String,
    /// Faults to be injected.
    pub faults: Faults,
    /// What its audit should find.
    pub expected: Expectation,
    /// Units at the start.
    pub stock: i64,
    /// Clients at once.
    pub users: u32,
    /// Bound on the load; it ends earlier when sold out.
    pub duration: Duration,
    /// Replicas of the service.
    pub replicas: usize,
    /// The slow part inside the critical section.
    pub work: Duration,
    /// ZooKeeper session timeout that is asked for.
    pub session_timeout: Duration,
    /// Deadline of an order.
    pub lock_wait: Duration,
}

/// The SKU that everybody wants.
pub const HOT_SKU: &str = "sku-1";

/// Where the lock directories are, under a run's chroot.
pub const LOCKS: &str = "/locks";

/// The mode that takes no lock.
pub const UNLOCKED: &str = "none";

/// The modes this lab can run.
pub const MODES: [&str; 5] = [UNLOCKED, "zk-simple", "zk-fair", "zk-rw-broadcast", "zk-rw"];

/// The writers this lab can run.
pub const WRITERS: [&str; 2] = ["plain", "fenced"];

/// The writer that goes with a mode when none is named.
pub fn default_writer(mode: &str) -> &'static str {
    if mode == UNLOCKED { "plain" } else { "fenced" }
}

impl Default for Experiment {
    /// A lock, a fence, no fault, and more demand than stock.
    fn default() -> Self {
        let session_timeout = Duration::from_secs(2);
        Self {
            name: "oversell".into(),
            mode: "zk-fair".into(),
            writer: "fenced".into(),
            faults: Faults::none(),
            expected: Expectation::Valid,
            stock: Faults::none().stock(),
            users: 40,
            duration: Duration::from_secs(90),
            replicas: 3,
            work: Self::work_for(&Faults::none()),
            session_timeout,
            lock_wait: Self::lock_wait_for(session_timeout),
        }
    }
}

impl Experiment {
    /// The slow part that goes with some faults: a holder that must be struck in the middle of it gets a longer one.
    pub fn work_for(faults: &Faults) -> Duration {
        Duration::from_millis(if faults.is_none() { 15 } else { 40 })
    }

    /// Whether a holder should be struck until its late write was seen: nothing refuses that of a plain writer.
    pub fn wants_late_write(&self) -> bool {
        self.writer == "plain" && self.faults.includes(FaultKind::FreezeHolder)
    }

    /// The deadline of an order that outlives the loss of the holder's session, the queue before it included.
    pub fn lock_wait_for(session_timeout: Duration) -> Duration {
        session_timeout * 2 + Duration::from_secs(4)
    }

    /// The path of the lock that guards the hot SKU, under the run's chroot.
    pub fn lock_path(&self) -> String {
        format!("{LOCKS}/stock:{HOT_SKU}")
    }

    /// The name as a database and chroot may have it.
    pub fn slug(&self) -> String {
        self.name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect()
    }
}

/// The demo: the danger, the cure, and the cure under fire.
pub fn demo() -> Vec<Experiment> {
    vec![
        Experiment {
            name: "no-lock".into(),
            mode: UNLOCKED.into(),
            writer: default_writer(UNLOCKED).into(),
            expected: Expectation::Oversold,
            // Updates get lost so fast that few units take thousands of orders to run out.
            stock: 40,
            ..Experiment::default()
        },
        Experiment { name: "fair-fenced".into(), stock: 250, ..Experiment::default() },
        Experiment {
            name: "fair-fenced-faults".into(),
            faults: Faults::demo(),
            stock: Faults::demo().stock(),
            work: Experiment::work_for(&Faults::demo()),
            ..Experiment::default()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_expects_what_the_table_says() {
        for run in demo() {
            assert_eq!(
                Expectation::of(&run.mode, &run.writer, &run.faults).expect("a claim"),
                run.expected,
                "{}",
                run.name
            );
            assert!(run.work < run.session_timeout && run.stock > 0);
        }
    }
}
