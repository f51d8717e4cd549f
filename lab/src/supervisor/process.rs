//! Tells a process from another one that got the same id later.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process: its id, and when it started in the kernel's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Field `starttime` of `/proc/<pid>/stat`.
    pub started_ticks: u64,
}

impl Identity {
    /// This process.
    pub fn mine() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// The process that has this id now. Zombies do not count.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let started_ticks = started_ticks(&stat)?;
        Some(Self { pid, started_ticks })
    }

    /// Whether this very process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Signals this very process; never another one, but for the instant between look and signal.
    pub(super) fn signal(self, signal: Signal) -> Result<(), Errno> {
        if self.is_alive() { kill(Pid::from_raw(self.pid.cast_signed()), signal) } else { Err(Errno::ESRCH) }
    }
}

/// The name in parentheses may hold anything, so fields are counted from the last parenthesis.
fn started_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Identity, started_ticks};

    #[test]
    fn a_process_with_the_same_id_but_another_start_is_a_stranger() {
        let me = Identity::mine().expect("this process has a /proc entry");
        assert!(me.is_alive());
        let stranger = Identity { started_ticks: me.started_ticks + 1, ..me };
        assert!(!stranger.is_alive());
        assert!(stranger.signal(nix::sys::signal::Signal::SIGKILL).is_err(), "would end this test otherwise");
    }

    #[test]
    fn the_start_is_the_22nd_field_whatever_the_name_holds() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20";
        assert_eq!(started_ticks(stat), Some(98765));
        assert_eq!(started_ticks(&stat.replace(" S 1", " Z 1")), None);
    }
}
