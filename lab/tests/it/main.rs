//! Integration tests of the lab, one binary: each module starts its own private servers.

mod audit;
mod interrupted;
mod oversell;
mod support;
mod up;
mod usage;
