//! Finds the programs a run needs, and says how to install what is missing.

use std::path::PathBuf;

/// A program that is not where it was looked for.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{program} is missing (looked in {looked_in}); {remedy}")]
pub struct Missing {
    /// What is missing.
    pub program: String,
    /// Where it was looked for.
    pub looked_in: String,
    /// What to do about it.
    pub remedy: String,
}

/// The binary `order-service` of this workspace.
pub fn order_service() -> Result<PathBuf, Missing> {
    todo!()
}

/// The binary `loadtest` of this workspace.
pub fn loadtest() -> Result<PathBuf, Missing> {
    todo!()
}

/// Everything that is missing, at once.
pub fn check_all() -> Result<(), Vec<Missing>> {
    todo!()
}
