//! Runs the real `lockstock` against a run base of its own, and looks for what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stack::RunDir;

/// Stacks of four servers and three replicas take turns: two cores do not carry two.
static TURN: Mutex<()> = Mutex::new(());

/// A folder for the runs of one test; it goes with the test, however that ends.
pub(crate) struct Bench {
    base: RunDir,
    _turn: MutexGuard<'static, ()>,
}

/// How a command ended.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// The one document on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A command that runs.
pub(crate) struct Started {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { base: RunDir::disposable("lab-test").expect("a folder"), _turn: turn }
    }

    pub(crate) fn path(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        let name = format!("call-{}", fs::read_dir(self.path()).expect("a folder").count());
        let (stdout, stderr) = (self.base.sub(format!("{name}.out")), self.base.sub(format!("{name}.err")));
        let child = Command::new(env!("CARGO_BIN_EXE_lockstock"))
            .args(arguments)
            .env("LOCKSTOCK_RUN_BASE", self.path())
            // What this machine happens to have; that they work is tested with the compose stack.
            .env("LOCKSTOCK_JAEGER", "/nonexistent")
            .env("LOCKSTOCK_PROMETHEUS", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(fs::File::create(&stdout).expect("a file"))
            .stderr(fs::File::create(&stderr).expect("a file"))
            .spawn()
            .expect("the program starts");
        Started { child, stdout, stderr }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        self.start(arguments).finish(Duration::from_mins(2))
    }

    /// Every process that belongs to this bench: started in its folder or with its variable.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mark = self.path().to_string_lossy().into_owned();
        let me = std::process::id();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("a /proc").flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let environment = String::from_utf8_lossy(&read("environ")).into_owned();
            let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let ours = command.contains(&mark) || environment.contains(&mark) || folder.starts_with(&mark);
            // The keeper of the disposable folder itself stays until the test is over.
            let keeper = command.contains("rm -rf") || folder.as_os_str().is_empty() && command.is_empty();
            if ours && pid != me && !keeper {
                found.push((pid, command));
            }
        }
        found
    }

    /// Nothing may be left; the kernel needs a moment to reap what was killed.
    pub(crate) fn expect_nothing_left(&self) {
        wait_for("every process to be gone", Duration::from_secs(10), || {
            let left = self.processes();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:#?}")) }
        });
    }

    /// The process of this bench whose command line contains a word, once there is one.
    pub(crate) fn process(&self, word: &str) -> u32 {
        let mut pid = 0;
        wait_for(word, Duration::from_mins(1), || {
            let all = self.processes();
            match all.iter().find(|(_, command)| command.contains(word)) {
                Some((found, _)) => {
                    pid = *found;
                    Ok(())
                }
                None => Err(format!("{all:#?}")),
            }
        });
        pid
    }
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until it has said something on stderr.
    pub(crate) fn expect_said(&mut self, what: &str) {
        let (path, child) = (self.stderr.clone(), &mut self.child);
        wait_for(what, Duration::from_secs(90), || {
            let said = fs::read_to_string(&path).unwrap_or_default();
            if said.contains(what) {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                panic!("ended with {status} before it said {what:?}:\n{said}");
            }
            Err(said)
        });
    }

    pub(crate) fn finish(mut self, within: Duration) -> Finished {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            if begun.elapsed() > within {
                self.child.kill().expect("a child of ours");
                panic!("still running after {} s; it said:\n{}", within.as_secs(), self.stderr());
            }
            thread::sleep(Duration::from_millis(20));
        };
        let stdout = fs::read_to_string(&self.stdout).unwrap_or_default();
        Finished { code: status.code(), stdout, stderr: self.stderr() }
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).expect("it runs");
}

/// Looks again and again until it is so, or the deadline is over.
pub(crate) fn wait_for(what: &str, within: Duration, mut look: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(seen) = look() {
        assert!(begun.elapsed() < within, "waited {} s for {what}; last seen:\n{seen}", within.as_secs());
        thread::sleep(Duration::from_millis(20));
    }
}
