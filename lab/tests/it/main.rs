//! Integration tests of the lab, one binary: each module starts its own private servers.
