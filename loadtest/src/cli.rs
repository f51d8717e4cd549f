//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use loadtest::{run::RunConfig, scenario::Kind};
use time::OffsetDateTime;

const EXAMPLES: &str = "\
Examples:
  # 200 users on three replicas fight for 100 units; who got what stands in history.jsonl
  loadtest oversell --host http://127.0.0.1:8081 --host http://127.0.0.1:8082 \\
      --host http://127.0.0.1:8083 --users 200 --stock 100 --history history.jsonl

  # The same quantities again, as new orders
  loadtest oversell --host http://127.0.0.1:8081 --seed 7 --run again

  # Ten seconds of everything at once, the figures as JSON
  loadtest mixed --host http://127.0.0.1:8081 --duration 10 --json

Every request has one line in the history: what was sent, when, and what came back (status 0: no
complete reply). A request whose outcome is unknown, and a refusal of the moment (503, 429), is sent
again with the same Idempotency-Key to the next replica; what is unknown at the end is settled in a
final pass. The load does not judge: give the history to `lockstock audit`.

Exit status: 0 the load ran, 64 wrong usage, 70 anything else (no replica answered, disk full, …).";

/// Drives orders at one or more order services and records what the client saw.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version, after_long_help = EXAMPLES, after_help = "More with --help.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A burst of orders on one SKU until it is sold out, then a tail that must be refused.
    ///
    /// Sets the stock of the SKU first. Ends when the SKU was seen sold out and the tail is done, or at
    /// a limit of count or time, whichever is first.
    #[command(after_long_help = EXAMPLES)]
    Oversell {
        #[command(flatten)]
        common: Common,
        /// The SKU.
        #[arg(long, default_value = "sku-1", value_parser = sku)]
        sku: String,
        /// Orders after the SKU was seen sold out.
        #[arg(long, value_name = "N", default_value_t = 50)]
        tail: u64,
        /// Units per order: from 1 to N, by the seed.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
        quantity_max: i64,
        /// Orders before the tail at most [default: 10 × stock + 10 × users]
        #[arg(long, value_name = "N")]
        orders_max: Option<u64>,
    },
    /// Orders of several lines, duplicates with the same key, cancels, reads and restocks.
    ///
    /// Sets the stock of every SKU first. Ends at a limit of count or time, whichever is first.
    #[command(after_long_help = EXAMPLES)]
    Mixed {
        #[command(flatten)]
        common: Common,
        /// A SKU; repeat for several [default: sku-1 … sku-5]
        #[arg(long, value_parser = sku)]
        sku: Vec<String>,
        /// Units per line: from 1 to N, by the seed.
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
        quantity_max: i64,
        /// Steps of all users at most (an order, a duplicate, a cancel, a read, a restock) [default: 200 × users]
        #[arg(long, value_name = "N")]
        steps_max: Option<u64>,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// A replica, as scheme, host and port; repeat for several. Users are spread over them.
    #[arg(long = "host", value_name = "URL", required = true, value_parser = host, env = "LOADTEST_HOSTS", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Users at once, all from the first moment.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    users: usize,
    /// Units of each SKU at the start.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(0..))]
    stock: i64,
    /// Seconds after which no step begins.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: u64,
    /// Same seed, same quantities, SKUs and actions for each user [default: 1]
    #[arg(long, default_value_t = 1, hide_default_value = true, env = "LOADTEST_SEED")]
    seed: u64,
    /// Name of the run, part of every Idempotency-Key: two runs of one name and seed on one database
    /// ask for the same orders [default: the scenario and the time]
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Where the history goes, as JSON lines; overwritten.
    #[arg(long, value_name = "FILE", default_value = "history.jsonl")]
    history: PathBuf,
    /// Also write the JSON summary here.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// JSON summary on standard output; progress and the table stay on standard error.
    #[arg(long)]
    json: bool,
    /// Milliseconds an attempt may take before it is given up and sent again elsewhere.
    #[arg(long, value_name = "MS", default_value_t = 8000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    attempt_timeout_ms: u64,
    /// Attempts per request, before the final pass.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    attempts_max: u32,
    /// Seconds the final pass may take to settle unknown outcomes.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=3600))]
    settle: u64,
    /// A collector, as OTLP over HTTP, that gets the root span of every request once the load is over.
    #[arg(long, value_name = "URL", value_parser = host, env = "LOADTEST_TRACES_TO")]
    traces_to: Option<String>,
}

/// Where results go besides the history.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) summary: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) traces_to: Option<String>,
}

impl Cli {
    /// What to run, and where results go.
    pub(crate) fn into_config(self) -> (RunConfig, Output) {
        match self.command {
            Command::Oversell { common, sku, tail, quantity_max, orders_max } => {
                let stock = u64::try_from(common.stock).unwrap_or_default();
                let orders_max = orders_max.unwrap_or(10 * (stock + common.users as u64));
                common.into_config(Kind::Oversell, vec![sku], quantity_max, orders_max, tail)
            }
            Command::Mixed { common, sku, quantity_max, steps_max } => {
                let skus = if sku.is_empty() { (1..=5).map(|n| format!("sku-{n}")).collect() } else { sku };
                let steps_max = steps_max.unwrap_or(200 * common.users as u64);
                common.into_config(Kind::Mixed, skus, quantity_max, steps_max, 0)
            }
        }
    }
}

impl Common {
    fn into_config(
        self,
        kind: Kind,
        skus: Vec<String>,
        quantity_max: i64,
        steps_max: u64,
        tail: u64,
    ) -> (RunConfig, Output) {
        let stamp = || format!("{}-{}", kind.as_str(), OffsetDateTime::now_utc().unix_timestamp_nanos());
        let config = RunConfig {
            kind,
            hosts: self.hosts,
            users: self.users,
            stock: self.stock,
            duration: Duration::from_secs(self.duration),
            skus,
            seed: self.seed,
            run: self.run.unwrap_or_else(stamp),
            history: self.history,
            steps_max,
            tail,
            quantity_max,
            attempts_max: self.attempts_max,
            attempt_timeout: Duration::from_millis(self.attempt_timeout_ms),
            settle: Duration::from_secs(self.settle),
        };
        (config, Output { summary: self.summary, json: self.json, traces_to: self.traces_to })
    }
}

fn host(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.path() != "/" {
        return Err("give scheme, host and port only, such as http://127.0.0.1:8081".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn sku(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { Ok(text.to_owned()) } else { Err("1 to 64 of A-Z a-z 0-9 . _ -".to_owned()) }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".to_owned()),
        Ok(users) if users <= 100_000 => Ok(users),
        Ok(_) => Err("at most 100000".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(arguments: &[&str]) -> Result<(RunConfig, Output), clap::Error> {
        let program = std::iter::once("loadtest");
        Cli::try_parse_from(program.chain(arguments.iter().copied())).map(Cli::into_config)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_bounded() {
        let (config, _) = parse(&["oversell", "--host", "http://127.0.0.1:1/"]).expect("valid");
        assert_eq!(config.hosts, ["http://127.0.0.1:1"]);
        assert_eq!((config.steps_max, config.tail), (1500, 50));
        let (config, _) = parse(&["mixed", "--host", "http://127.0.0.1:1"]).expect("valid");
        assert_eq!(config.skus.len(), 5);
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            &["oversell"][..],
            &["oversell", "--host", "127.0.0.1:8080"],
            &["oversell", "--host", "http://h/path"],
            &["oversell", "--host", "http://h", "--users", "0"],
            &["oversell", "--host", "http://h", "--sku", "a b"],
            &["oversell", "--host", "http://h", "--stock", "-1"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
