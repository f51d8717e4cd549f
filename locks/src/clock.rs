//! The clock of the lease: time since boot, *including* the time the machine slept.
//!
//! Promises that a suspended laptop or virtual machine sees its lease run out at the first look after it wakes.
//! `std::time::Instant` does not: on Linux it stands still during a suspend. Says nothing about the wall clock.

use std::time::Duration;

/// A reading of the boot-time clock. Comparable within one process only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(Duration);

impl BootInstant {
    /// Reads the clock.
    pub(crate) fn now() -> Self {
        // macOS counts sleep in its monotonic clock; Linux, Android and Fuchsia need the boot-time one.
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "fuchsia")))]
        let clock = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(clock);
        // Both parts are non-negative for a clock that starts at boot.
        Self(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    pub(crate) fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    #[cfg(test)]
    pub(crate) const fn at(since_boot: Duration) -> Self {
        Self(since_boot)
    }
}

impl std::ops::Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let first = BootInstant::now();
        assert!(BootInstant::now() >= first);
    }
}
