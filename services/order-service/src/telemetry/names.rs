//! Every metric of the service: name, unit, kind and help text. A test compares this table with the catalog, and the
//! metrics are made from it.

/// How a metric adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// A value of now.
    Gauge,
    /// A distribution.
    Histogram,
}

impl MetricKind {
    /// As the catalog spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricName {
    /// OpenTelemetry name.
    pub name: &'static str,
    /// UCUM unit.
    pub unit: &'static str,
    /// How it adds up.
    pub kind: MetricKind,
    /// What `# HELP` says.
    pub help: &'static str,
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> MetricName {
    MetricName { name, unit, kind: MetricKind::Counter, help }
}

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> MetricName {
    MetricName { name, unit, kind: MetricKind::Gauge, help }
}

const fn histogram(name: &'static str, unit: &'static str, help: &'static str) -> MetricName {
    MetricName { name, unit, kind: MetricKind::Histogram, help }
}

pub(super) const LOCK_WAIT: MetricName = histogram(
    "lock.wait.duration",
    "s",
    "time from asking for a lock to having it or to an error, by outcome",
);
pub(super) const LOCK_HOLD: MetricName =
    histogram("lock.hold.duration", "s", "time from having a lock to its release");
pub(super) const LOCK_WAITING: MetricName =
    gauge("lock.waiting", "{waiter}", "attempts that wait for a lock now");
pub(super) const LOCK_HELD: MetricName = gauge("lock.held", "{lock}", "locks held now");
pub(super) const LOCK_WAIT_LONGEST: MetricName =
    gauge("lock.wait.longest", "s", "the longest wait that has not ended yet");
pub(super) const LOCK_LOST: MetricName =
    counter("lock.lost", "{lock}", "locks lost while they were held, by reason");
pub(super) const LOCK_RELEASE_PENDING: MetricName = counter(
    "lock.release.pending",
    "{lock}",
    "releases that were not confirmed in time and went on in the background",
);
pub(super) const FENCED: MetricName =
    counter("order.fenced_writes", "{write}", "writes that the fence refused, by reason");
pub(super) const REQUESTS: MetricName =
    counter("order.requests", "{request}", "changes of stock asked for, by outcome");
pub(super) const REQUEST_DURATION: MetricName =
    histogram("order.request.duration", "s", "time from the arrival of a change to its answer");
pub(super) const IN_FLIGHT: MetricName = gauge("order.requests.in_flight", "{request}", "requests in flight");
pub(super) const POOL: MetricName =
    gauge("db.pool.connections", "{connection}", "connections to the database, by state");
pub(super) const SESSION_STATE: MetricName =
    gauge("zookeeper.session.state", "{session}", "1 for the state that the ZooKeeper session is in");
pub(super) const SPANS: MetricName = counter(
    "trace.spans",
    "{span}",
    "spans that were to be exported: how many were, how many were dropped, and why",
);
pub(super) const LIMIT_REQUESTS: MetricName =
    gauge("order.limit.requests", "{request}", "limit of requests in flight");
pub(super) const LIMIT_CONNECTIONS: MetricName =
    gauge("order.limit.db_connections", "{connection}", "limit of connections to the database");
pub(super) const LIMIT_LOCK_WAIT: MetricName = gauge("order.limit.lock_wait", "s", "deadline of a change");
pub(super) const LIMIT_BODY: MetricName = gauge("order.limit.body", "By", "limit of a request body");

/// Reason of a refused write: a later holder has written.
pub const OVERTAKEN: &str = "overtaken";
/// Reason of a refused write: tokens have started again below the fence.
pub const TOKEN_BEHIND_FENCE: &str = "token-behind-fence-while-held";

/// All of them.
pub const METRICS: &[MetricName] = &[
    LOCK_WAIT,
    LOCK_HOLD,
    LOCK_WAITING,
    LOCK_HELD,
    LOCK_WAIT_LONGEST,
    LOCK_LOST,
    LOCK_RELEASE_PENDING,
    FENCED,
    REQUESTS,
    REQUEST_DURATION,
    IN_FLIGHT,
    POOL,
    SESSION_STATE,
    SPANS,
    LIMIT_REQUESTS,
    LIMIT_CONNECTIONS,
    LIMIT_LOCK_WAIT,
    LIMIT_BODY,
];

#[cfg(test)]
mod tests {
    use super::METRICS;

    /// The entries under `metrics:` of the catalog, as (name, unit, kind, help).
    fn catalog() -> Vec<[String; 4]> {
        let text = include_str!("../../../../observability/catalog.yaml");
        let section = text.split("\nmetrics:\n").nth(1).expect("a section `metrics:`");
        let section = section.split("\n\n").next().unwrap_or_default();
        let value = |entry: &str, key: &str| {
            let line = entry.lines().find_map(|line| line.trim().strip_prefix(key));
            line.unwrap_or_else(|| panic!("no {key} in {entry}")).trim().trim_matches('"').to_owned()
        };
        let entries = section.split("  - name:").skip(1).map(|entry| format!("name:{entry}"));
        entries.map(|e| ["name:", "unit:", "kind:", "help:"].map(|key| value(&e, key))).collect()
    }

    #[test]
    fn code_and_catalog_describe_the_same_metrics() {
        let code = METRICS.iter().map(|m| [m.name, m.unit, m.kind.as_str(), m.help].map(ToOwned::to_owned));
        let (mut code, mut catalog): (Vec<_>, _) = (code.collect(), catalog());
        code.sort();
        catalog.sort();
        assert_eq!(code, catalog);
    }
}
