//! What is said while a run goes on: lines on stderr, so that stdout stays for the result.

use std::time::Instant;

/// Says what happens, with the time since the start.
#[derive(Debug, Clone)]
pub struct Progress {
    begun: Instant,
    quiet: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn new(quiet: bool) -> Self {
        Self { begun: Instant::now(), quiet }
    }

    /// Says one thing.
    pub fn say(&self, what: &str) {
        if !self.quiet {
            eprintln!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f64());
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}
