//! Starts children.

use std::{ffi::OsString, path::PathBuf};

use crate::{Child, RunDir, StartError};

/// A program to be started as a [`Child`]; its output goes to `<run folder>/<name>.log`.
#[derive(Debug)]
pub struct Command {}

impl Command {
    /// The program, and the name its child has in the run.
    pub fn new(_name: impl Into<String>, _program: impl Into<PathBuf>) -> Self {
        todo!()
    }
    /// Adds an argument.
    pub fn arg(self, _arg: impl Into<OsString>) -> Self {
        todo!()
    }
    /// Adds arguments.
    pub fn args<A: Into<OsString>>(self, _args: impl IntoIterator<Item = A>) -> Self {
        todo!()
    }
    /// Sets a variable.
    pub fn env(self, _key: impl Into<OsString>, _value: impl Into<OsString>) -> Self {
        todo!()
    }
    /// Removes every inherited variable whose name begins so.
    pub fn env_remove_prefix(self, _prefix: impl Into<String>) -> Self {
        todo!()
    }
    /// Starts it.
    pub fn spawn(self, _dir: &RunDir) -> Result<Child, StartError> {
        todo!()
    }
}
