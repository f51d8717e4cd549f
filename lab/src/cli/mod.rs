//! The commands. Results go to stdout, one JSON document with `--json`; everything else goes to stderr.

mod args;
mod audit;
mod demo;
mod down;
mod fences;
mod locks;
mod on_site;
mod outcome;
mod run;
mod series;
mod status;
mod system;
mod up;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use lab::guard::Interrupts;
use lab::progress::Progress;
use lab::verdict::Exit;
use serde::Serialize;

use args::{Cli, Command, RunCommand};
use outcome::{Outcome, Stop};

/// What every command is given.
pub(crate) struct Context {
    pub(crate) json: bool,
    pub(crate) progress: Progress,
    pub(crate) interrupts: Interrupts,
}

impl Context {
    /// Prints the result of a command: a document for machines, or text.
    pub(crate) fn result(
        &self,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string_pretty(document)? } else { text() };
        match writeln!(io::stdout(), "{}", text.trim_end()) {
            // Whoever read us has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Where stdout or stderr is closed there is nobody to tell.
            error.print().ok();
            let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return ExitCode::from(if asked_for { Exit::Valid } else { Exit::Usage }.code());
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(io::stderr)
        .init();
    let json = cli.json;
    let outcome = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(dispatch(cli)),
        Err(error) => Err(error.into()),
    };
    let exit = outcome.unwrap_or_else(|stop| {
        let message = stop.message();
        eprintln!("lockstock: {message}");
        if json {
            println!("{}", serde_json::json!({ "error": message }));
        }
        stop.exit()
    });
    ExitCode::from(exit.code())
}

async fn dispatch(cli: Cli) -> Outcome {
    let context =
        Context { json: cli.json, progress: Progress::new(cli.quiet), interrupts: Interrupts::listen()? };
    match cli.command {
        Command::Demo(args) => demo::demo(&context, &args).await,
        Command::Up(args) => up::up(&context, &args).await,
        Command::Supervise(args) => up::supervise(&context, &args).await,
        Command::Down(args) => {
            let left = "the supervisor goes on stopping what it started";
            interruptible(&context, down::down(&context, &args), left).await
        }
        Command::Status(args) => interruptible(&context, status::status(&context, &args), UNTOUCHED).await,
        Command::Run(RunCommand::Oversell(args)) => run::oversell(&context, &args).await,
        Command::Audit(args) => interruptible(&context, audit::audit(&context, &args), UNTOUCHED).await,
        Command::Fences(args) => {
            let left = "fences were reset all or not at all; ask again without --reset";
            interruptible(&context, fences::fences(&context, &args), left).await
        }
        Command::Locks(args) => locks::locks(&context, &args).await,
    }
}

const UNTOUCHED: &str = "nothing was changed";

/// A command that has nothing to put in order when a signal comes.
async fn interruptible(context: &Context, command: impl Future<Output = Outcome>, left: &str) -> Outcome {
    tokio::select! {
        outcome = command => outcome,
        signal = context.interrupts.first() => Err(Stop::Signal(signal, left.to_owned())),
    }
}
