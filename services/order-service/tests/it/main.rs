//! The service as processes against real servers: PostgreSQL, ZooKeeper on Java. `scripts/setup` installs what is missing.

mod bad_input;
mod clients;
mod commits;
mod exclusion;
mod fence;
mod keys;
mod orders;
mod outages;
mod replicas;
mod shutdown;
mod support;
mod telemetry;
