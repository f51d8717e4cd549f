//! A process of ours, in its own process group, that the kernel kills when we die.
//!
//! Promised: a signal never reaches another process that got the same id later; every end is noticed at once.
//! Not promised: anything about processes that the child itself starts.

use std::{
    fmt, fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use tokio::sync::watch;

use crate::{Death, Watchdog};

/// How long a killed process may take to vanish: the kernel needs milliseconds, a full disk queue longer.
const KILLED: Duration = Duration::from_secs(5);
/// Lines of log that go with the news of a death.
pub(crate) const TAIL_LINES: usize = 20;
/// The most of a log that is read for its tail.
const TAIL_BYTES: u64 = 64 * 1024;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "signal {signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

/// A process of ours. Clones are handles to the same process; when the last one is dropped it gets SIGKILL.
#[derive(Debug, Clone)]
pub struct Child {
    handle: Arc<Handle>,
}

/// Kills with the last clone; the thread that waits for the process holds only what is inside.
#[derive(Debug)]
struct Handle {
    process: Arc<Process>,
}

#[derive(Debug)]
struct Process {
    name: String,
    pid: u32,
    log: PathBuf,
    state: Mutex<State>,
    ended: Condvar,
    exit: watch::Sender<Option<Exit>>,
}

#[derive(Debug)]
struct State {
    process: std::process::Child,
    exit: Option<Exit>,
    end_is_expected: bool,
}

impl Child {
    /// Takes charge of a process that was just started.
    pub(crate) fn adopt(
        process: std::process::Child,
        name: String,
        log: PathBuf,
        may_end: bool,
        watchdog: Watchdog,
    ) -> Self {
        let process = Arc::new(Process {
            name,
            pid: process.id(),
            log,
            state: Mutex::new(State { process, exit: None, end_is_expected: may_end }),
            ended: Condvar::new(),
            exit: watch::Sender::new(None),
        });
        let waiter = Arc::clone(&process);
        thread::spawn(move || waiter.reap(&watchdog));
        Self { handle: Arc::new(Handle { process }) }
    }

    /// Its name in the run, such as `zookeeper-1`.
    pub fn name(&self) -> &str {
        &self.handle.process.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.handle.process.pid
    }

    /// SIGSTOP: freezes it until [`resume`](Self::resume). Returns once it stands still.
    pub fn pause(&self) {
        self.handle.process.signal(Signal::SIGSTOP);
        let deadline = Instant::now() + Duration::from_secs(1);
        while self.is_running() && !self.is_stopped() && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.handle.process.signal(Signal::SIGCONT);
    }

    /// SIGTERM. From now on its death is expected. A paused one sees it when it is resumed.
    pub fn terminate(&self) {
        self.end_with(Signal::SIGTERM);
    }

    /// SIGKILL. From now on its death is expected.
    pub fn kill(&self) {
        self.end_with(Signal::SIGKILL);
    }

    /// Sends a signal that asks for its end.
    pub(crate) fn end_with(&self, signal: Signal) {
        self.handle.process.state().end_is_expected = true;
        self.handle.process.signal(signal);
    }

    /// Whether it has not ended yet; a paused one runs.
    pub fn is_running(&self) -> bool {
        self.exit().is_none()
    }

    /// Whether it is frozen, by [`pause`](Self::pause) or by anybody else.
    pub fn is_stopped(&self) -> bool {
        self.is_running() && state_letter(self.pid()) == Some('T')
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.handle.process.state().exit
    }

    /// Waits for its end; `None` when it still runs at the deadline. Sends nothing. Cancel safe.
    pub async fn wait_exit(&self, deadline: Duration) -> Option<Exit> {
        let mut exit = self.handle.process.exit.subscribe();
        let ended = exit.wait_for(Option::is_some);
        tokio::time::timeout(deadline, ended).await.ok()?.ok().and_then(|exit| *exit)
    }

    /// SIGTERM (and SIGCONT, should it be paused), then SIGKILL if it still runs after `grace`.
    pub async fn stop(&self, grace: Duration) -> Exit {
        self.terminate();
        self.resume();
        if let Some(exit) = self.wait_exit(grace).await {
            return exit;
        }
        self.kill();
        self.wait_exit(KILLED).await.unwrap_or(Exit::Signal(Signal::SIGKILL as i32))
    }

    /// Waits for its end without a runtime, for use while values are dropped.
    pub(crate) fn wait_exit_blocking(&self, until: Instant) -> Option<Exit> {
        self.handle.process.wait(until)
    }

    /// Where its output goes.
    pub fn log_path(&self) -> &Path {
        &self.handle.process.log
    }

    /// The last lines of its output.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.handle.process.log, lines)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.process.state().end_is_expected = true;
        self.process.signal(Signal::SIGKILL);
        self.process.wait(Instant::now() + KILLED);
    }
}

impl Process {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under the lock that reaping takes too: while `exit` is unset the id is still that of our child.
    fn signal(&self, signal: Signal) {
        let state = self.state();
        if state.exit.is_none() {
            // Our own child, maybe a zombie: this can only fail where nothing is left to do.
            kill(as_pid(self.pid), signal).ok();
        }
    }

    fn wait(&self, until: Instant) -> Option<Exit> {
        let mut state = self.state();
        while state.exit.is_none() {
            let left = until.checked_duration_since(Instant::now())?;
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.exit
    }

    /// Waits for the end, then reaps and tells everybody.
    fn reap(&self, watchdog: &Watchdog) {
        // Leaves the zombie in place, so that nobody else gets its id before we hold the lock.
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(as_pid(self.pid)), flags) == Err(Errno::EINTR) {}
        let (exit, expected) = {
            let mut state = self.state();
            let exit = state.process.wait().map_or(Exit::Signal(0), Exit::from);
            state.exit = Some(exit);
            (exit, state.end_is_expected)
        };
        if !expected {
            let log_tail = tail(&self.log, TAIL_LINES);
            watchdog.report(Death { name: self.name.clone(), pid: self.pid, exit, log_tail });
        }
        self.ended.notify_all();
        self.exit.send_replace(Some(exit));
    }
}

fn as_pid(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

/// The state of a process as the kernel tells it: R, S, D, T, Z, …
fn state_letter(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses and may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The last lines of a log; empty when it cannot be read.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
