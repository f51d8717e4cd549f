//! Waits until nothing is left of the traffic, or until the time is up, and says what is left then.

use std::time::Duration;

use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use tokio::time::Instant;

use super::CollectError;
use crate::audit::{
    AuditInputs, Locks,
    facts::{LeftLocks, LeftSessions},
};

const LOOK_EVERY: Duration = Duration::from_millis(100);

const TRANSACTIONS: &str = "\
    SELECT format('%s pid %s, %s for %s ms, last: %s', application_name, pid, state,
                  (extract(epoch FROM clock_timestamp() - state_change) * 1000)::bigint, left(query, 80))
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
    loop {
        let sessions = sessions(&mut connection).await?;
        let at_work: i64 = sqlx::query_scalar(AT_WORK)
            .fetch_one(&mut *connection)
            .await
            .map_err(|source| CollectError::Database { what: "sessions", source })?;
        let locks = match &inputs.locks {
            Some(locks) => Some(look(locks).await?),
            None => None,
        };
        let quiet =
            at_work == 0 && sessions == LeftSessions::default() && locks.as_ref().is_none_or(is_quiet);
        if quiet || Instant::now() >= deadline {
            return Ok((Some(sessions), locks));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
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
    Ok(LeftSessions { transactions, advisory_locks })
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
        nodes.extend(view.entries.iter().map(|entry| format!("{}/{}", view.path, entry.node)));
    }
    let watches = match &locks.watches {
        Some(watches) => Some((watches.baseline, (watches.now)().await.map_err(CollectError::Watches)?)),
        None => None,
    };
    Ok(LeftLocks { nodes, watches })
}
