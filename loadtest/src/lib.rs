//! A load generator for order services, and the history that it keeps.
//!
//! Promises: the load is bounded in count and in time; every request that was sent has one record in
//! the history; a retry carries the key of the first attempt. It knows the service only by HTTP.
//! Does not judge: what the history means together with the database is the audit's to say.

pub mod campaign;
pub mod client;
pub mod export;
pub mod history;
pub mod plan;
pub mod pursue;
pub mod run;
pub mod scenario;
pub mod settle;
pub mod summary;
pub mod trace;
