//! The real Apache Curator and the real kazoo on the same path as ours. Both are processes of their own
//! (`tests/peers/`), driven step by step, so that who comes before whom is decided here.
//!
//! What is shown here is what `docs/migration.md` says.

mod contention;
mod loss;
mod mutex;
mod peer;
mod permits;
mod readers;
mod revocation;
mod witness;
