//! Removes a run folder when its owner is gone, however it went.
//!
//! A small shell waits for the end of its input, which we hold open: it ends with our process, also on SIGKILL.
//! It is the one process that outlives us, for the fraction of a second that removing takes.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

/// PostgreSQL killed by the kernel leaves a System V segment behind (its interlock); a machine has 4096 of them.
/// Removing is tried again while the servers, killed at the same moment, still write their last.
const SWEEP: &str = r#"
read -r _
cd /
for file in "$0"/*/data/postmaster.pid; do
    [ -f "$file" ] && ipcrm -m "$(sed -n '7s/.* //p' "$file")"
done
tries=0
until rm -rf -- "$0" || [ "$tries" -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// The shell that waits. Dropping it lets it work, and waits until it is done.
#[derive(Debug)]
pub(crate) struct Sweeper {
    shell: Child,
}

impl Sweeper {
    pub(crate) fn start(dir: &Path) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SWEEP])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        // `wait` closes the shell's input first.
        self.shell.wait().ok();
    }
}
