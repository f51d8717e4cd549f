//! Runs a job until it is done, a signal comes, or a child dies unasked.
//!
//! Promised: a first SIGINT, SIGTERM or SIGHUP ends the job at its next await and lets the caller stop things in
//! order; a second one ends this process at once (the kernel then ends its children). A death that explains a failed
//! job is preferred to the job's own complaint. Not promised: that a job which never awaits is ended.

use std::io;
use std::time::Duration;

use stack::{Death, Watchdog};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::sync::watch;

/// How a guarded job ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// By itself.
    Done(T),
    /// This signal came.
    Signal(Signal),
    /// This child died unasked.
    Death(Death),
}

/// A signal that asks us to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub number: u8,
}

const SIGINT: Signal = Signal { name: "SIGINT", number: 2 };
const SIGTERM: Signal = Signal { name: "SIGTERM", number: 15 };
const SIGHUP: Signal = Signal { name: "SIGHUP", number: 1 };

/// How long a failed job waits for the news of the death that may explain it.
const NEWS_OF_DEATH: Duration = Duration::from_millis(700);

/// The signals that ask this process to stop. One value a process; clones share what came.
#[derive(Debug, Clone)]
pub struct Interrupts {
    came: watch::Receiver<Option<Signal>>,
}

impl Interrupts {
    /// From now on the signals no longer end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        let (tell, came) = watch::channel(None);
        let mut streams = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        );
        tokio::spawn(async move {
            tell.send_replace(Some(next(&mut streams).await));
            let second = next(&mut streams).await;
            eprintln!("{} again: ending at once", second.name);
            std::process::exit(i32::from(128 + second.number));
        });
        Ok(Self { came })
    }

    /// The first signal; waits until there is one. Cancel safe.
    pub async fn first(&self) -> Signal {
        let mut came = self.came.clone();
        let first = came.wait_for(Option::is_some).await.ok().and_then(|first| *first);
        match first {
            Some(signal) => signal,
            // The listener lives as long as the runtime.
            None => std::future::pending().await,
        }
    }
}

async fn next((int, term, hup): &mut (Stream, Stream, Stream)) -> Signal {
    tokio::select! {
        _ = int.recv() => SIGINT,
        _ = term.recv() => SIGTERM,
        _ = hup.recv() => SIGHUP,
    }
}

/// Runs a job that may fail until it ends, or until something ends it.
pub async fn guarded<T, E>(
    interrupts: &Interrupts,
    watchdog: &Watchdog,
    job: impl Future<Output = Result<T, E>>,
) -> Ended<Result<T, E>> {
    tokio::select! {
        biased;
        signal = interrupts.first() => Ended::Signal(signal),
        death = watchdog.first_death() => Ended::Death(death),
        result = job => match result {
            Ok(done) => Ended::Done(Ok(done)),
            Err(error) => {
                // Losing a connection is noticed sooner than the end of the process behind it.
                if let Ok(death) = tokio::time::timeout(NEWS_OF_DEATH, watchdog.first_death()).await {
                    return Ended::Death(death);
                }
                Ended::Done(Err(error))
            }
        }
    }
}
