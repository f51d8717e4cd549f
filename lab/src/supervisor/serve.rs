//! The supervisor: starts a stack, keeps it, and stops it when told or when a part of it dies.

use std::convert::Infallible;
use std::io::{self, Read as _};
use std::time::Duration;

use stack::{Death, FleetConfig, RunDir, Stack, StartError, Status, ZooKeeperConfig};

use super::home::{Home, HomeError, Phase, State};
use super::process::Identity;
use crate::guard::{Ended, Interrupts, Signal, guarded};
use crate::limits;

/// What `up` starts.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Lock mode.
    pub mode: String,
    /// Writer.
    pub writer: String,
    /// Replicas of the service.
    pub replicas: usize,
    /// The slow part inside the critical section.
    pub work: Duration,
    /// ZooKeeper session timeout that is asked for.
    pub session_timeout: Duration,
    /// Switches the fault endpoints on.
    pub faults_token: Option<String>,
}

/// The database of a stack that `up` started.
pub const DATABASE: &str = "lockstock";

/// How a supervisor ended, once everything was stopped.
#[derive(Debug)]
pub enum Served {
    /// It was told to.
    Told(Signal),
    /// A child died unasked.
    Died(Death),
}

/// A supervisor could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The home is taken or cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A server could not be started.
    #[error("the stack could not be started")]
    Start(#[from] StartError),
    /// The own entry in /proc cannot be read.
    #[error("cannot read /proc/{pid}/stat", pid = std::process::id())]
    Identity,
    /// A child died while the others were starting.
    #[error(transparent)]
    Died(#[from] Death),
    /// A signal came while servers were starting.
    #[error("stopped by {} while starting", signal.name)]
    Interrupted {
        /// Which.
        signal: Signal,
    },
    /// `up` was killed while servers were starting.
    #[error("whoever started this stack is gone before it was ready")]
    Abandoned,
    /// It cannot leave its terminal.
    #[error("cannot start a session of its own")]
    Detach(#[from] nix::errno::Errno),
}

/// Leaves the terminal: a session of its own, so that neither Ctrl-C nor a closed terminal reaches it.
pub fn detach() -> Result<(), ServeError> {
    nix::unistd::setsid()?;
    Ok(())
}

/// Resolves when `up` is gone: it holds the other end of our input. Cancel safe.
pub async fn abandoned() {
    let (gone, wait) = tokio::sync::oneshot::channel();
    // A thread that nobody waits for, since a read of stdin cannot be cancelled.
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut rest = [0; 64];
        while input.read(&mut rest).is_ok_and(|read| read > 0) {}
        gone.send(()).ok();
    });
    wait.await.ok();
}

/// Starts everything, calls `ready`, and serves until told to stop or until a child dies; while it starts, also until
/// `abandoned`.
pub async fn serve(
    home: &Home,
    dir: RunDir,
    options: &UpOptions,
    interrupts: &Interrupts,
    abandoned: impl Future<Output = ()>,
    ready: impl FnOnce(&Status),
) -> Result<Served, ServeError> {
    let _taken = home.take()?;
    let supervisor = Identity::mine().ok_or(ServeError::Identity)?;
    let run_dir = dir.path().to_owned();
    let say = |phase| home.write(&State { supervisor, run_dir: run_dir.clone(), phase });
    say(Phase::Starting)?;
    let watchdog = dir.watchdog().clone();
    let start = async {
        tokio::select! {
            started = start(dir, options) => started.map_err(ServeError::from),
            () = abandoned => Err(ServeError::Abandoned),
        }
    };
    let stack = match guarded(interrupts, &watchdog, start).await {
        Ended::Done(Ok((stack, status))) => {
            say(Phase::Ready)?;
            ready(&status);
            stack
        }
        Ended::Done(Err(error)) => return fail(error, say),
        Ended::Signal(signal) => return fail(ServeError::Interrupted { signal }, say),
        Ended::Death(death) => {
            say(Phase::Ended { reason: cause(&death) })?;
            return Err(death.into());
        }
    };
    let served = match guarded(
        interrupts,
        &watchdog,
        std::future::pending::<Result<Infallible, Infallible>>(),
    )
    .await
    {
        Ended::Signal(signal) => Served::Told(signal),
        Ended::Death(death) => Served::Died(death),
        Ended::Done(never) => match never {
            Ok(never) | Err(never) => match never {},
        },
    };
    say(Phase::Stopping)?;
    stack.stop().await;
    match &served {
        Served::Told(_) => home.forget()?,
        Served::Died(death) => say(Phase::Ended { reason: cause(death) })?,
    }
    Ok(served)
}

/// Without the end of the log, which is in the run folder.
fn cause(death: &Death) -> String {
    format!("{} (process {}) died unasked with {}", death.name, death.pid, death.exit)
}

fn fail(error: ServeError, say: impl Fn(Phase) -> Result<(), HomeError>) -> Result<Served, ServeError> {
    say(Phase::Ended { reason: error.to_string() })?;
    Err(error)
}

async fn start(dir: RunDir, options: &UpOptions) -> Result<(Stack, Status), StartError> {
    let mut stack = Stack::start(dir, ZooKeeperConfig::default()).await?;
    stack.observe().await;
    let database_url = stack.postgres().create_database(DATABASE).await?;
    let config = FleetConfig {
        name: "order".into(),
        replicas: options.replicas,
        mode: options.mode.clone(),
        writer: options.writer.clone(),
        database_url,
        zookeeper_connect: stack.zookeeper().connect_string("/lockstock"),
        session_timeout: options.session_timeout,
        lock_wait: Duration::from_secs(5),
        work: options.work,
        faults_token: options.faults_token.clone(),
        extra_env: limits::within(options.session_timeout),
    };
    stack.start_fleet(config).await?;
    let status = stack.write_status().await?;
    Ok((stack, status))
}
