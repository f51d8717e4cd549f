//! Waits until nothing is left of the traffic, or until the time is up, and says what is left then.
//!
//! Left is what was there at every look. What comes and goes while the audit waits is traffic, and no fault.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use tokio::time::Instant;
use zk_locks::LockEntry;

use super::CollectError;
use crate::audit::{
    AuditInputs, Locks,
    facts::{LeftLocks, LeftSessions},
};

const LOOK_EVERY: Duration = Duration::from_millis(100);

const TRANSACTIONS: &str = "\
    SELECT format('%s pid %s, %s, begun %s, last: %s', application_name, pid, state, xact_start, left(query, 80))
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND state LIKE 'idle in transaction%'
    ORDER BY pid";

/// A transaction that is at work is no fault, but it is not quiet either.
const AT_WORK: &str = "\
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND state = 'active' AND xact_start IS NOT NULL";

const ADVISORY_LOCKS: &str = "\
    SELECT format('pid %s holds %s/%s', pid, classid, objid)
    FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY pid, classid, objid";

/// What is left at the end of the wait.
pub(super) async fn wait(
    inputs: &AuditInputs<'_>,
) -> Result<(Option<LeftSessions>, Option<LeftLocks>), CollectError> {
    let deadline = Instant::now() + inputs.quiet_within;
    let acquired = inputs.database.acquire().await;
    let mut connection: PoolConnection<Postgres> =
        acquired.map_err(|source| CollectError::Database { what: "sessions", source })?;
    let mut stayed = Stayed::default();
    loop {
        let mut sessions = sessions(&mut connection).await?;
        let at_work: i64 = sqlx::query_scalar(AT_WORK)
            .fetch_one(&mut *connection)
            .await
            .map_err(|source| CollectError::Database { what: "sessions", source })?;
        let mut locks = match &inputs.locks {
            Some(locks) => Some(look(locks).await?),
            None => None,
        };
        let quiet =
            at_work == 0 && sessions == LeftSessions::default() && locks.as_ref().is_none_or(is_quiet);
        stayed.look(&mut sessions, locks.as_mut());
        if quiet || Instant::now() >= deadline {
            return Ok((Some(sessions), locks));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What has been there at every look so far.
#[derive(Default)]
struct Stayed {
    transactions: Option<BTreeSet<String>>,
    nodes: Option<BTreeSet<String>>,
    watches: Option<u64>,
}

impl Stayed {
    /// Takes out what was not there before, and says that there was such a thing.
    fn look(&mut self, sessions: &mut LeftSessions, locks: Option<&mut LeftLocks>) {
        sessions.passing = keep(&mut self.transactions, &mut sessions.transactions);
        if let Some(locks) = locks {
            locks.passing = keep(&mut self.nodes, &mut locks.nodes);
            if let Some((_, now)) = &mut locks.watches {
                *now = self.watches.map_or(*now, |fewest| fewest.min(*now));
                self.watches = Some(*now);
            }
        }
    }
}

fn keep(stayed: &mut Option<BTreeSet<String>>, now: &mut Vec<String>) -> bool {
    let there = now.len();
    if let Some(stayed) = stayed {
        now.retain(|one| stayed.contains(one));
    }
    *stayed = Some(now.iter().cloned().collect());
    now.len() < there
}

fn is_quiet(left: &LeftLocks) -> bool {
    left.nodes.is_empty() && left.watches.is_none_or(|(before, now)| now <= before)
}

async fn sessions(connection: &mut PgConnection) -> Result<LeftSessions, CollectError> {
    let cannot = |what| move |source| CollectError::Database { what, source };
    let transactions = sqlx::query_scalar(TRANSACTIONS).fetch_all(&mut *connection);
    let transactions = transactions.await.map_err(cannot("sessions"))?;
    let advisory_locks = sqlx::query_scalar(ADVISORY_LOCKS).fetch_all(&mut *connection);
    let advisory_locks = advisory_locks.await.map_err(cannot("advisory locks"))?;
    Ok(LeftSessions { transactions, advisory_locks, passing: false })
}

/// Contenders, and anything else below a lock directory: those are the direct children of the root.
async fn look(locks: &Locks<'_>) -> Result<LeftLocks, CollectError> {
    let root = locks.root.trim_end_matches('/');
    let mut nodes = Vec::new();
    for view in locks.inspector.locks(root).await? {
        let below = view.path.strip_prefix(root).unwrap_or(&view.path).trim_matches('/');
        if below.contains('/') {
            nodes.push(view.path.clone());
        }
        // With the token: nodes of the simple recipe all have one name.
        let named = |entry: &LockEntry| format!("{}/{}, token {}", view.path, entry.node, entry.token);
        nodes.extend(view.entries.iter().map(named));
    }
    let watches = match &locks.watches {
        Some(watches) => Some((watches.baseline, (watches.now)().await.map_err(CollectError::Watches)?)),
        None => None,
    };
    Ok(LeftLocks { nodes, watches, passing: false })
}
