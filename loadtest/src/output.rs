//! Standard output belongs to the JSON summary alone.
//!
//! goose prints notices to it ("All 20 users launched."), and has no switch for all of them. So the
//! program keeps the real one for itself and lets everybody else's go to standard error.

use std::{
    fs::File,
    io::{self, Write as _},
};

/// The real standard output.
#[derive(Debug)]
pub(crate) struct Stdout(File);

impl Stdout {
    /// Takes standard output away from the rest of the program. Once, before anything prints.
    pub(crate) fn take() -> io::Result<Self> {
        let real = nix::unistd::dup(io::stdout())?;
        nix::unistd::dup2_stdout(io::stderr())?;
        Ok(Self(File::from(real)))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "{text}")
    }
}
