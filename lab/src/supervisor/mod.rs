//! `up`, `down`, `status`: a stack that goes on running behind a supervisor process of its own.
//!
//! Promised: everything that `up` started dies with the supervisor, however that ends, and the supervisor with an `up`
//! that is killed before it could say that the stack is ready; a state file left behind by a
//! dead one is recognised (process id and start time), so no stranger's process is ever signalled; two supervisors
//! never share a home. Not promised: that a stack survives the machine.

mod down;
mod home;
mod launch;
mod process;
mod serve;

pub use down::{Down, DownError, down};
pub use home::{Home, HomeError, Phase, Running, State};
pub use launch::{LaunchError, launch};
pub use serve::{DATABASE, ServeError, Served, UpOptions, abandoned, detach, serve};
