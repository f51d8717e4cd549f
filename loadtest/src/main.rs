//! The binary `loadtest`; see `loadtest --help`.
fn main() {}
