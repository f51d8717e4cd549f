//! The lab behind `lockstock`: starts the whole system, drives load, injects faults, audits what happened, reports.
//!
//! Data flows one way: experiment → run → facts → report. The audit judges from the database, from `ZooKeeper` and
//! from the client's own history; it never asks the service it judges.

pub mod audit;
pub mod experiments;
pub mod faults;
pub mod fences;
pub mod guard;
pub mod limits;
pub mod progress;
pub mod report;
pub mod run;
pub mod site;
pub mod supervisor;
pub mod verdict;
