//! Deducts stock from PostgreSQL under ZooKeeper locks.
//!
//! Where to look: [`config`] what it is told; [`app`] start and stop; [`http`] the interface; [`place`] the use cases, all
//! of them through one skeleton that holds the lock; [`lockers`] who may enter; [`store`] all SQL, both writers;
//! [`replicas`] who may run beside whom; [`health`] whether it is ready; [`telemetry`] spans and metrics.
//!
//! Promises that units are sold once with the fenced writer, whatever becomes of the locks, and that every request is
//! answered by its deadline. Does not promise an order for requests of different replicas, and nothing at all for the
//! plain writer once a lock is lost.

pub mod app;
pub mod config;
pub mod domain;
pub mod health;
pub mod http;
pub mod lockers;
pub mod place;
pub mod problem;
pub mod replicas;
pub mod store;
pub mod tasks;
pub mod telemetry;
