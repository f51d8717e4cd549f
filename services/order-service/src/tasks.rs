//! Work that outlives the request that asked for it.
//!
//! Promises that a task goes on when its client disconnects, on the runtime that lives until the end of the process (a
//! worker of the web server dies with its tasks and the sockets it opened), and that a shutdown can wait for all tasks.

use std::future::Future;

use tokio::{runtime::Handle, sync::watch, task::JoinHandle, time::Instant};

/// Starts and counts tasks.
#[derive(Debug, Clone)]
pub struct Tasks {
    runtime: Handle,
    running: watch::Sender<usize>,
}

struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl Tasks {
    /// Tasks of the current runtime.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn here() -> Self {
        Self { runtime: Handle::current(), running: watch::Sender::new(0) }
    }

    /// Starts a task.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.running.send_modify(|running| *running += 1);
        let counted = Counted(self.running.clone());
        self.runtime.spawn(async move {
            let _counted = counted;
            task.await
        })
    }

    /// Waits until none runs; `false` at the deadline.
    pub async fn idle(&self, until: Instant) -> bool {
        let mut running = self.running.subscribe();
        tokio::time::timeout_at(until, running.wait_for(|running| *running == 0)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn idle_waits_for_tasks_and_for_those_that_panic() {
        let tasks = Tasks::here();
        let (go, gone) = oneshot::channel::<()>();
        drop(tasks.spawn(async move { gone.await.ok() }));
        assert!(!tasks.idle(Instant::now() + Duration::from_millis(20)).await);
        drop(tasks.spawn(async { panic!("on purpose") }));
        drop(go);
        assert!(tasks.idle(Instant::now() + Duration::from_secs(5)).await);
    }
}
