//! The shape of `report.json`. Names of the design stay as they are; fields may be added, never renamed.
//!
//! Everything here is a plain value: the page, the table and the plots are made from it and from nothing else, so a
//! report can be drawn again from its JSON.

use serde::{Deserialize, Serialize};

use crate::audit::AuditReport;
use crate::site::Links;
use crate::verdict::Verdict;

/// A whole report: one document for one invocation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Valid only if each run ended as expected.
    pub verdict: Verdict,
    /// Given back with `--seed`, it repeats the choices (not the interleaving) of this report.
    pub seed: u64,
    /// When the first run began, RFC 3339.
    pub started_at: String,
    /// Wall time from the first server's start to the last audit, in seconds.
    pub duration_s: f64,
    /// Versions of what took part.
    pub versions: Versions,
    /// The machine the figures come from.
    pub machine: Machine,
    /// The runs, in order.
    pub runs: Vec<RunReport>,
}

impl Report {
    /// The verdict over runs: is each as expected?
    pub fn verdict_of(runs: &[RunReport]) -> Verdict {
        Verdict::of_all(runs.iter().map(RunReport::claim))
    }
}

/// Versions of the programs of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Versions {
    /// This program.
    pub lockstock: String,
    /// The `PostgreSQL` server.
    pub postgres: String,
    /// The `ZooKeeper` servers.
    pub zookeeper: String,
}

/// The machine of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that may be used.
    pub cpus: usize,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Kernel release.
    pub kernel: String,
    /// One-minute load average when the report began: other people's work on the same machine.
    pub load_1m: f64,
}

/// One run: what was claimed, what happened, what the audit says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunReport {
    /// Name of the experiment.
    pub name: String,
    /// Lock mode of the service.
    pub mode: String,
    /// Writer of the service.
    pub writer: String,
    /// Fault, `none` or names joined by `+`.
    pub fault: String,
    /// The verdict that the experiment expects of the audit. `invalid` means: it must find units oversold.
    pub expected: Verdict,
    /// What the audit said about this run.
    pub verdict: Verdict,
    /// Whether the expectation came true, for the expected reason.
    pub as_expected: bool,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// Orders by outcome, as the clients saw them.
    pub orders: Orders,
    /// Figures of the audit, and the findings behind them.
    pub audit: AuditReport,
    /// Writes that the fence refused.
    pub fenced_out: u64,
    /// Locks that were lost while held.
    pub locks_lost: u64,
    /// Faults that are proved to have hit a critical section.
    pub faults_confirmed: u64,
    /// Accepted orders per second, from the first to the last accepted order.
    pub orders_per_s: f64,
    /// Time from sending an order to its decided reply.
    pub order_ms: Percentiles,
    /// Time an accepted order waited for its locks.
    pub lock_wait_ms: Percentiles,
    /// The longest recovery: from a fault to the next accepted order on its SKU. Absent without a fault.
    pub recovery_ms: Option<f64>,
    /// How requests were answered.
    pub replies: Replies,
    /// What was asked for.
    pub load: Load,
    /// Each fault that was tried.
    pub faults: Vec<FaultRecord>,
    /// Each lock that was lost.
    pub lost_locks: Vec<LostLock>,
    /// Each write that was refused by the fence.
    pub fenced_writes: Vec<FencedWrite>,
    /// What the plots show.
    pub series: Series,
    /// Where to look at it, on a stack that has pages for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

impl RunReport {
    /// Whether this run supports its claim.
    pub fn claim(&self) -> Verdict {
        // The units were oversold as expected, but nothing proves that it was for the fault that was asked for.
        let by_chance = self.expected == Verdict::Invalid && self.audit.oversold > 0;
        if self.as_expected {
            Verdict::Valid
        } else if self.verdict == Verdict::Unknown || by_chance {
            Verdict::Unknown
        } else {
            Verdict::Invalid
        }
    }

    /// Orders that were turned down or not settled.
    pub fn refused(&self) -> u64 {
        self.orders.out_of_stock + self.orders.failed + self.orders.unknown
    }
}

/// Orders by their settled outcome; retries with the same key count once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Acknowledged.
    pub accepted: u64,
    /// Refused because the stock was sold out.
    pub out_of_stock: u64,
    /// Refused for another reason, and said not to be placed.
    pub failed: u64,
    /// Never settled.
    pub unknown: u64,
}

/// Percentiles of a distribution, in milliseconds; absent where nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half are below.
    pub p50: Option<f64>,
    /// 95 of 100 are below.
    pub p95: Option<f64>,
    /// 99 of 100 are below.
    pub p99: Option<f64>,
}

/// How requests were answered, by replicas that were not frozen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Replies {
    /// Requests that never got one.
    pub unanswered: u64,
    /// Requests that got one later than a second after their deadline, as the client measured it.
    pub late: u64,
    /// The longest time to one of any kind, as the client measured it.
    pub slowest_ms: f64,
}

/// What was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Load {
    /// The SKU everybody wants.
    pub sku: String,
    /// Units at the start.
    pub stock: i64,
    /// Clients at once.
    pub users: u32,
    /// Replicas of the service.
    pub replicas: usize,
    /// The slow part inside the critical section.
    pub work_ms: u64,
    /// ZooKeeper session timeout.
    pub session_timeout_ms: u64,
    /// Deadline of an order; every reply is due half a second later.
    pub lock_wait_limit_ms: u64,
    /// Wall time of the load, in seconds.
    pub duration_s: f64,
}

/// One fault, tried once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Name of the fault.
    pub kind: String,
    /// When it struck, in seconds after the start of the load.
    pub at_s: f64,
    /// The replica it struck.
    pub instance: String,
    /// Fencing token of the critical section it was aimed at.
    pub token: i64,
    /// The ZooKeeper session, in hexadecimal.
    pub session: String,
    /// Whether it is proved to have hit a critical section.
    pub confirmed: bool,
    /// What proves it, or what was missed.
    pub evidence: String,
    /// From the fault to the next accepted order on the SKU, in milliseconds.
    pub recovery_ms: Option<f64>,
}

/// A lock that was lost while it was held.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LostLock {
    /// Seconds after the start of the load.
    pub at_s: f64,
    /// Who held it.
    pub instance: String,
    /// Its token.
    pub token: Option<i64>,
    /// Why it was lost.
    pub reason: String,
}

/// A write that came too late and was refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FencedWrite {
    /// Seconds after the start of the load.
    pub at_s: f64,
    /// Whose write.
    pub instance: String,
    /// The stale token.
    pub token: Option<i64>,
    /// The fence that stood in its way.
    pub fence: Option<i64>,
}

/// What the plots show; times in seconds after the start of the load.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// Stock in the row after each change.
    pub stock: Vec<(f64, i64)>,
    /// When each accepted order was committed.
    pub accepted: Vec<f64>,
    /// Lock wait of each accepted order, in milliseconds.
    pub lock_waits_ms: Vec<f64>,
}
