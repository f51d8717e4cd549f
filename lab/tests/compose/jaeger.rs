//! The searches that a run's links lead to, asked of Jaeger's API: a page's address has the same query.

use std::time::{Duration, Instant};

use crate::run::Run;

const ARRIVED: Duration = Duration::from_secs(30);

/// How many traces each search finds.
#[derive(Debug)]
pub(crate) struct Searches {
    pub(crate) slowest_orders: usize,
    pub(crate) fenced_writes: usize,
}

impl Searches {
    /// Spans arrive in batches, so it asks until both are as the report has them, or for half a minute.
    pub(crate) async fn of(run: &Run) -> Self {
        let (links, begun) = (run.links(), Instant::now());
        loop {
            let found = Self {
                slowest_orders: traces(&links.slowest_orders).await,
                fenced_writes: traces(&links.fenced_writes).await,
            };
            let all = found.slowest_orders > 0 && found.fenced_writes == run.fenced_writes();
            if all || begun.elapsed() > ARRIVED {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

async fn traces(page: &str) -> usize {
    let url = page.replace("/search?", "/api/traces?");
    let answer = reqwest::get(&url).await.expect("Jaeger answers");
    assert!(answer.status().is_success(), "{url}: {}", answer.status());
    let found: serde_json::Value = answer.json().await.expect("JSON");
    found["data"].as_array().map_or(0, Vec::len)
}
