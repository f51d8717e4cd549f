//! The audit: invariants I1–I5 from the database, `ZooKeeper` and the client history.
