//! The command line. What it means stands in the command's own file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lab::experiments::{FaultKind, Faults, MODES, WRITERS};

const EXIT_CODES: &str = "\
Exit status: 0 valid (or done), 1 invalid, 2 unknown: the load or the fault did not really happen,
64 wrong usage, 70 anything else that went wrong, 130/143 stopped by Ctrl-C/SIGTERM.";

const EXAMPLES: &str = "\
Examples:
  lockstock demo                                      the whole story in a minute, with a report
  lockstock up && lockstock status                    leave a stack running and see its addresses
  lockstock locks --watch                             who holds, who waits, since when
  lockstock run oversell --mode none                  the danger: no lock
  lockstock run oversell --writer plain --fault freeze-holder
                                                      the danger: a lock without a fence
  lockstock run oversell --fault expire-holder        the cure under fire
  lockstock run oversell --stack compose --fault cut-server
                                                      against the compose stack, broken through its engine
  lockstock audit                                     judge the running stack
  lockstock down";

/// Starts replicas of an order service on one hot SKU, breaks their locks, and says whether stock was oversold.
#[derive(Debug, Parser)]
#[command(name = "lockstock", version, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"), propagate_version = true)]
pub(crate) struct Cli {
    /// One JSON document on stdout; progress and logs go to stderr in any case
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr while it runs
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Without a lock, with a fenced lock, and with a fenced lock under fire: three runs, one verdict
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Start a stack and leave it running: PostgreSQL, three ZooKeeper servers, replicas of the service
    Up(UpArgs),
    /// Stop the running stack; its folder is kept
    Down(HomeArgs),
    /// What runs and where
    Status(HomeArgs),
    /// One experiment, on a private stack or one that runs
    #[command(subcommand, after_help = EXIT_CODES)]
    Run(RunCommand),
    /// Judge a system from its database, its ZooKeeper and, if given, the clients' own history
    #[command(after_help = EXIT_CODES)]
    Audit(AuditArgs),
    /// Who holds and who waits on each lock, since when, in which session and trace
    Locks(LocksArgs),
    /// Rows that refuse every write because ZooKeeper's data was lost, and their reset
    Fences(FencesArgs),
    /// The process behind `up`
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Repeats the choices of an earlier demo; chosen by chance when not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep the data of the servers in the run folder (it is kept anyway when a run ends otherwise than expected)
    #[arg(long)]
    pub(crate) keep_data: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HomeArgs {
    /// The folder given to `up --run-dir`
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// How the services of a stack run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceArgs {
    /// Who may enter the critical section
    #[arg(long, default_value = "zk-fair", value_parser = clap::builder::PossibleValuesParser::new(MODES))]
    pub(crate) mode: String,
    /// How the row changes; plain with mode none, fenced otherwise
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(WRITERS))]
    pub(crate) writer: Option<String>,
    /// Replicas of the service
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) replicas: u8,
    /// The slow part inside the critical section; 15, or 40 with a fault: the holder is struck in the middle
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub(crate) work_ms: Option<u64>,
    /// ZooKeeper session timeout to ask for
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1000..=60_000))]
    pub(crate) session_timeout_ms: u64,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Everything runs on free loopback ports and dies with its supervisor; `lockstock down` stops it."
)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// Use this folder instead of a new one; stacks in different folders run side by side
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Stay in the foreground until Ctrl-C
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Switch the fault endpoints on; requests to them need this token, eight characters at least
    #[arg(long, value_name = "TOKEN", value_parser = faults_token)]
    pub(crate) faults_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    #[arg(long)]
    pub(crate) home: PathBuf,
    #[arg(long)]
    pub(crate) run_dir: PathBuf,
    #[arg(long, env = FAULTS_TOKEN_VARIABLE)]
    pub(crate) faults_token: Option<String>,
}

/// What the service accepts as a token.
fn faults_token(text: &str) -> Result<String, String> {
    if text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("at least 8 visible ASCII characters".to_owned())
    }
}

/// Carries the token to the supervisor, where a command line would show it to everybody.
pub(crate) const FAULTS_TOKEN_VARIABLE: &str = "LOCKSTOCK_FAULTS_TOKEN";

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Far more demand than stock on one SKU: a burst until sold out
    #[command(after_help = format!("Faults:\n{}\n\n{EXIT_CODES}", faults_help()))]
    Oversell(OversellArgs),
}

/// Every fault and what it does.
fn faults_help() -> String {
    let line = |kind: FaultKind| {
        let only = if kind.needs_compose() { " (--stack compose)" } else { "" };
        format!("  {:<16} {}{only}", kind.name(), kind.about())
    };
    FaultKind::all().map(line).collect::<Vec<_>>().join("\n")
}

/// Which stack that runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunningStack {
    /// A Docker Compose project on this host, broken through its engine
    Compose,
    /// The one whose network this is: what `docker compose run loadtest` uses
    Inside,
}

/// The verdict to expect of the audit.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Expect {
    /// Every invariant holds
    Valid,
    /// Units are oversold: the audit says invalid
    Oversold,
}

#[derive(Debug, Args)]
pub(crate) struct OversellArgs {
    /// A stack that runs, instead of a private one; how its replicas are set is its own affair
    #[arg(long, env = "LOCKSTOCK_STACK", conflicts_with_all =
          ["mode", "writer", "replicas", "work_ms", "session_timeout_ms", "keep_data"])]
    pub(crate) stack: Option<RunningStack>,
    /// The compose project
    #[arg(long, value_name = "NAME", default_value = "lockstock")]
    pub(crate) project: String,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// Clients at once
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub(crate) users: u32,
    /// Units at the start; enough for the faults when not given
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub(crate) stock: Option<i64>,
    /// Bound on the load in seconds; it ends earlier when sold out. Enough for the faults when not given: 90 on a private
    /// stack, 60 and 60 more for each fault on one that runs
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) duration: Option<u64>,
    /// none, or faults joined by `+`; they are listed below
    #[arg(long, default_value = "none")]
    pub(crate) fault: Faults,
    /// Repeats the choices of an earlier run; chosen by chance when not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// What the audit should find; follows from mode, writer and fault when not given
    #[arg(long)]
    pub(crate) expect: Option<Expect>,
    /// Keep the data of the servers in the run folder (it is kept anyway when the run ends otherwise than expected)
    #[arg(long)]
    pub(crate) keep_data: bool,
}

/// Which system to look at: the one that `up` left running, or any other.
#[derive(Debug, Args)]
pub(crate) struct SystemArgs {
    /// The folder given to `up --run-dir`; without it and without addresses, the running stack
    #[arg(long, value_name = "DIR", conflicts_with_all = ["database_url", "zookeeper"])]
    pub(crate) run_dir: Option<PathBuf>,
    /// The database
    #[arg(long, value_name = "URL", requires = "zookeeper")]
    pub(crate) database_url: Option<String>,
    /// ZooKeeper: hosts and chroot
    #[arg(long, value_name = "HOSTS/CHROOT", requires = "database_url")]
    pub(crate) zookeeper: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    /// History written by `loadtest --history`
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Tokens are ZooKeeper's transaction ids. When its data is lost they start low again, and every row that has seen a higher
one refuses every write. Exit status: 0 none is ahead, or they were reset; 1 some are ahead.")]
pub(crate) struct FencesArgs {
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    /// Set the fences that are ahead to 0, and note it in the ledger. Stop the replicas first
    #[arg(long)]
    pub(crate) reset: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    /// The folder given to `up --run-dir`; without it and without an address, the running stack
    #[arg(long, value_name = "DIR", conflicts_with = "zookeeper")]
    pub(crate) run_dir: Option<PathBuf>,
    /// ZooKeeper: hosts and chroot
    #[arg(long, value_name = "HOSTS/CHROOT")]
    pub(crate) zookeeper: Option<String>,
    /// Look again and again until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    /// Remove a contender's node whose owner is gone for good, for example
    /// /locks/stock:sku-1/_c_5f…-lock-0000000007. A living owner is told that it lost the lock
    #[arg(long, value_name = "PATH/NODE", requires = "token", conflicts_with = "watch")]
    pub(crate) remove: Option<String>,
    /// The node's token as `lockstock locks` shows it: nobody else's node is removed by mistake
    #[arg(long, requires = "remove")]
    pub(crate) token: Option<i64>,
}
