//! Integration tests of zk-locks against real ZooKeeper ensembles. Each module is one kind of trouble.
//! The numbers of cases in comments are those of faults reported against other libraries (docs/cases.md).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod cancel;
mod conformance;
mod contention;
mod crash;
mod directory;
mod impostor;
mod inspect;
mod interop;
mod loss;
mod model;
mod outage;
mod partition;
mod permits;
mod readers;
mod replies;
mod support;
