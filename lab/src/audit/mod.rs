//! The audit: did invariants I1–I5 hold? Judged from PostgreSQL, from ZooKeeper and from the client's own
//! history, never by asking the service that is judged.
//!
//! Three steps: *collect* is all the I/O and no judgement; *facts* are plain data; *judge* is a pure
//! function of them. Promises: a broken invariant that shows in the facts gives a finding and the verdict
//! invalid; where facts leave room for doubt (clocks, outcomes unknown to the client) the doubt is the
//! service's. Sources that cannot be read are an error, not a verdict.
//!
//! - I1 start + restocked + cancelled − acknowledged = on hand ≥ 0, per SKU; each change starts from what the
//!   change before it left, the first of a SKU from none; nobody is refused units that were there.
//! - I2 acknowledged orders = order rows = ledger rows, exactly once each; cancels too.
//! - I3 tokens never go down per SKU, and each new holder's token is higher.
//! - I4 once quiet, nothing is left under the lock directories and no watch more than before.
//! - I5 once quiet, no transaction is open and no advisory lock is held.

mod collect;
pub mod facts;
mod inputs;
mod judge;
mod report;

pub use collect::CollectError;
pub use inputs::{AuditInputs, Locks, Reading, Watches};
pub use judge::{Tolerance, judge};
pub use report::{AuditReport, Finding, Invariant, Judged};

/// Collects the facts, waiting for quiet as long as the inputs allow, and judges them.
///
/// # Errors
/// A source could not be read.
///
/// # Cancel safety
/// Cancel safe: it only reads.
///
/// # Cost
/// Reads the whole database and history into memory; while it waits, two statements and one walk over the
/// lock directories each tenth of a second.
pub async fn audit(inputs: AuditInputs<'_>) -> Result<AuditReport, CollectError> {
    let tolerance = inputs.tolerance;
    let facts = collect::collect(&inputs).await?;
    Ok(judge(&facts, tolerance))
}
