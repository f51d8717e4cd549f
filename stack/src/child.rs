//! A process of ours, in its own process group, that the kernel kills when we die.

use std::{fmt, path::Path, time::Duration};

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

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A process of ours. Clones are handles to the same process; when the last one is dropped it gets SIGKILL.
#[derive(Debug, Clone)]
pub struct Child {}

impl Child {
    /// Its name in the run, such as `zookeeper-1`.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Its process id.
    pub fn pid(&self) -> u32 {
        todo!()
    }
    /// SIGSTOP: freezes it until [`resume`](Self::resume).
    pub fn pause(&self) {
        todo!()
    }
    /// SIGCONT.
    pub fn resume(&self) {
        todo!()
    }
    /// SIGTERM. From now on its death is expected.
    pub fn terminate(&self) {
        todo!()
    }
    /// SIGKILL. From now on its death is expected.
    pub fn kill(&self) {
        todo!()
    }
    /// Whether it has not ended yet; a paused one runs.
    pub fn is_running(&self) -> bool {
        todo!()
    }
    /// Whether it is frozen by [`pause`](Self::pause).
    pub fn is_stopped(&self) -> bool {
        todo!()
    }
    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        todo!()
    }
    /// Waits for its end; `None` when it still runs at the deadline. Sends nothing. Cancel safe.
    pub async fn wait_exit(&self, _deadline: Duration) -> Option<Exit> {
        todo!()
    }
    /// Where its output goes.
    pub fn log_path(&self) -> &Path {
        todo!()
    }
    /// The last lines of its output.
    pub fn log_tail(&self, _lines: usize) -> String {
        todo!()
    }
}
