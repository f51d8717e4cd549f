//! Faults drawn from a seed.
//!
//! Promised: one seed, one plan, on every machine. Not promised: one run; which frame is the next such is up to the
//! client and the servers.

use std::{env, fmt, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::proxy::{Cut, Op, Silence, Stage, Then, When};

/// The variable that names the seed to replay.
const SEED: &str = "LOCKSTOCK_SEED";
/// Up to so many frames pass between two faults, pings not counted.
const PASS_AT_MOST: usize = 12;
/// The longest delay.
const DELAY_MS: u64 = 150;

/// A number of faults, one after the other, each at a frame of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    seed: u64,
    steps: Vec<(Stage, usize, Then)>,
}

/// `LOCKSTOCK_SEED`, or a seed of its own. Says on standard error what to set to have it again.
///
/// # Panics
/// When the variable is no number.
pub fn seed() -> u64 {
    let seed = match env::var(SEED) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED}={seed} is no number")),
        Err(_) => rand::rng().random(),
    };
    eprintln!("to replay: {SEED}={seed}");
    seed
}

impl Plan {
    /// So many cuts, delays and silences as `seed` will have them.
    pub fn random(seed: u64, faults: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut step = || {
            let stage = if random.random() { Stage::Request } else { Stage::Reply };
            let pass = random.random_range(1..=PASS_AT_MOST);
            let then = match random.random_range(0..8) {
                0 => Then::Cut(Cut::Fin),
                1 => Then::Cut(Cut::Reset),
                2 => Then::Mute(Silence::Both),
                3 => Then::Mute(Silence::Requests),
                4 => Then::Mute(Silence::Replies),
                _ => Then::Delay(Duration::from_millis(random.random_range(1..=DELAY_MS))),
            };
            (stage, pass, then)
        };
        Self { seed, steps: (0..faults).map(|_| step()).collect() }
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = (When, Then)> + use<> {
        self.steps.clone().into_iter().map(|(stage, nth, then)| {
            (When::any().that(move |message| message.stage == stage && message.op != Op::Ping).nth(nth), then)
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}:", self.seed)?;
        self.steps.iter().try_for_each(|(stage, nth, then)| write!(f, " {stage:?} {nth} {then:?};"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan() {
        let plan = Plan::random(7, 40);
        assert_eq!(plan, Plan::random(7, 40));
        assert_ne!(plan.steps, Plan::random(8, 40).steps);
        assert!(plan.to_string().starts_with("seed 7: "));
        let has = |is: fn(&Then) -> bool| plan.steps.iter().any(|(_, _, then)| is(then));
        assert!(has(|then| matches!(then, Then::Cut(_))) && has(|then| matches!(then, Then::Mute(_))));
    }
}
