//! The audit is the judge of everything else: it must never cry wolf and never miss.

mod judge_of_sound_worlds;
mod judge_of_spoilt_tokens;
mod judge_of_spoilt_worlds;
mod race_without_lock;
mod real_servers;
mod world;
