//! Real servers for tests and for the lab: PostgreSQL, a ZooKeeper ensemble and fleets of order-service,
//! as private processes on free loopback ports, with everything they write under one run folder.
//!
//! Or a Docker Compose project that runs already, through its engine: [`ComposeProject`].
//!
//! Promised: a child never outlives this process, not even when it gets SIGKILL; a child that dies unasked is
//! noticed and reported with its status and the end of its log; stopping is bounded.
//! Not promised: anything about other machines or other users' servers; nothing here listens beyond 127.0.0.1.

mod ask;
mod child;
mod compose;
mod fleet;
mod observatory;
pub mod ports;
mod postgres;
pub mod programs;
mod proxy;
mod run_dir;
mod spawn;
mod stack;
mod start;
mod status;
mod sweeper;
pub mod testing;
mod watchdog;
mod zookeeper;

pub use ask::AskError;
pub use child::{Child, Exit};
pub use compose::{ComposeProject, Container, EngineError, Undo};
pub use fleet::{Fleet, FleetConfig, Replica};
pub use observatory::{Observatory, ObservatoryStatus, Seen};
pub use postgres::Postgres;
pub use programs::Missing;
pub use proxy::{Bytes, Cut, Frames, Message, Op, Plan, Proxy, Silence, Stage, Then, Trigger, When, seed};
pub use run_dir::{RunDir, RunDirError};
pub use spawn::Command;
pub use stack::Stack;
pub use start::StartError;
pub use status::{PostgresStatus, ServiceStatus, Status, ZooKeeperStatus};
pub use watchdog::{Death, Watchdog};
pub use zookeeper::{ZooKeeper, ZooKeeperConfig};
