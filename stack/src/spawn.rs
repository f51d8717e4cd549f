//! Starts children so that they cannot outlive us.
//!
//! Promised: the kernel sends SIGKILL to the child when this process ends, whatever ends it; Ctrl-C in a terminal
//! reaches only us, because each child has a process group of its own.
//! How: `setpriv --pdeathsig` of util-linux, since the call that sets it is not safe to make between fork and exec.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{self, Stdio},
    sync::{OnceLock, mpsc},
    thread,
};

use nix::unistd::{Gid, Uid};

use crate::{Child, RunDir, StartError, Watchdog, programs};

/// The parent may die before the child has asked for the signal: then the child has another parent by now, and ends.
const STILL_OURS: &str = r#"[ "$PPID" = "$0" ] || exit 125; exec "$@""#;

/// A program to be started as a [`Child`]; its output is added to `<run folder>/<name>.log`, its input is empty,
/// its working folder is the run folder.
#[derive(Debug)]
pub struct Command {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    removed_prefixes: Vec<String>,
    may_end: bool,
    user: Option<(Uid, Gid)>,
}

/// Where the children of a run live, and who is told of their deaths.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) watchdog: Watchdog,
}

impl Command {
    /// The program, and the name its child has in the run.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            removed_prefixes: Vec::new(),
            may_end: false,
            user: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Removes every inherited variable whose name begins so; those set with [`env`](Self::env) stay.
    #[must_use]
    pub fn env_remove_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.removed_prefixes.push(prefix.into());
        self
    }

    /// It ends by itself when its work is done: its end is not an unexpected death.
    #[must_use]
    pub fn may_end(mut self) -> Self {
        self.may_end = true;
        self
    }

    /// Runs it as another user; only root can.
    #[must_use]
    pub(crate) fn user(mut self, user: Option<(Uid, Gid)>) -> Self {
        self.user = user;
        self
    }

    /// Starts it. A program that cannot be executed shows as a child that ended with code 126 or 127.
    pub fn spawn(self, dir: &RunDir) -> Result<Child, StartError> {
        self.spawn_in(dir.place())
    }

    pub(crate) fn spawn_in(self, place: &Place) -> Result<Child, StartError> {
        let setpriv = programs::setpriv()?;
        let log = place.path.join(format!("{}.log", self.name));
        let failed = |doing, path: &PathBuf| {
            let path = path.clone();
            move |source| StartError::Io { doing, path, source }
        };
        let open = || fs::OpenOptions::new().create(true).append(true).open(&log);
        let out = open().map_err(failed("open the log", &log))?;
        let err = out.try_clone().map_err(failed("open the log", &log))?;

        let mut command = process::Command::new(&setpriv);
        if let Some((uid, gid)) = self.user {
            // A change of user clears the death signal, so the user comes first, in an exec of its own.
            let (uid, gid) = (uid.to_string(), gid.to_string());
            command.args(["--reuid", &uid, "--regid", &gid, "--clear-groups", "--"]).arg(&setpriv);
        }
        command.args(["--pdeathsig", "KILL", "--", "/bin/sh", "-c", STILL_OURS]);
        command.arg(process::id().to_string()).arg(&self.program).args(&self.args);
        for (key, _) in std::env::vars_os() {
            if self.removed_prefixes.iter().any(|prefix| begins_with(&key, prefix)) {
                command.env_remove(key);
            }
        }
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        command.current_dir(&place.path).process_group(0);

        let process = spawn_from_lasting_thread(command).map_err(failed("start", &self.program))?;
        Ok(Child::adopt(process, self.name, log, self.may_end, place.watchdog.clone()))
    }
}

fn begins_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

type Request = (process::Command, mpsc::SyncSender<io::Result<process::Child>>);

/// The death signal follows the *thread* that started the child, not the process. So all children are started by one
/// thread that lives as long as the process: nobody ever drops its sender.
fn spawn_from_lasting_thread(command: process::Command) -> io::Result<process::Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, todo) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (mut command, reply) in todo {
                // Who asked is waiting; should it have panicked, the child goes with its handle.
                if let Err(mpsc::SendError(Ok(mut orphan))) = reply.send(command.spawn()) {
                    orphan.kill().and_then(|()| orphan.wait()).ok();
                }
            }
        });
        requests
    });
    let gone = || io::Error::other("the spawning thread is gone");
    let (reply, answer) = mpsc::sync_channel(1);
    spawner.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
