//! Configuration: environment variables, parsed once, by a pure function, into typed values.
//!
//! Promises to report every problem at once, each naming its variable, and never to print a secret. Does not promise that
//! anything configured can be reached.

use std::{collections::BTreeMap, fmt, net::SocketAddr, time::Duration};

use sqlx::postgres::PgConnectOptions;
use zk_locks::SessionConfig;

use crate::lockers::{self, MODES, Mode, Writer};

/// Everything the service is told from outside.
pub struct Config {
    /// Where PostgreSQL is, with the password.
    pub database: PgConnectOptions,
    /// Size of the connection pool.
    pub db_connections_max: u32,
    /// `lock_timeout` of each connection.
    pub db_lock_timeout: Duration,
    /// `idle_in_transaction_session_timeout` of each connection.
    pub db_idle_in_transaction: Duration,
    /// ZooKeeper's hosts and chroot.
    pub zookeeper_connect: String,
    /// The session timeout asked for; ZooKeeper may grant another.
    pub session_timeout: Duration,
    /// Where to listen; port 0 takes a free one.
    pub http_addr: SocketAddr,
    /// The name of this replica.
    pub instance: String,
    /// Who may enter.
    pub mode: &'static Mode,
    /// How a row is changed.
    pub writer: Writer,
    /// The deadline of a request, counted from its arrival.
    pub lock_wait: Duration,
    /// The slow part of an order, inside the critical section.
    pub work: Duration,
    /// How many requests are served at the same time.
    pub requests_max: usize,
    /// How long a shutdown waits for what is in flight.
    pub shutdown_grace: Duration,
    /// Switches the fault endpoints on.
    pub faults_token: Option<Secret>,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Compares in a time that depends only on the lengths.
    pub fn matches(&self, given: &[u8]) -> bool {
        let secret = self.0.as_bytes();
        let differences = secret.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        secret.len() == given.len() && differences == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// All that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {} problem(s):", self.0.len())?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

/// Every variable of ours; another `ORDER_*` name is a typing mistake.
const KNOWN: &[&str] = &[
    "ORDER_DB_CONNECTIONS_MAX",
    "ORDER_DB_IDLE_IN_TRANSACTION_MS",
    "ORDER_DB_LOCK_TIMEOUT_MS",
    "ORDER_FAULTS_TOKEN",
    "ORDER_HTTP_ADDR",
    "ORDER_INSTANCE",
    "ORDER_LOCK_MODE",
    "ORDER_LOCK_WAIT_MS",
    "ORDER_REQUESTS_MAX",
    "ORDER_SHUTDOWN_GRACE_MS",
    "ORDER_WORK_MS",
    "ORDER_WRITER",
];

/// Shortest token that switches faults on.
const FAULTS_TOKEN_LENGTH_MIN: usize = 8;

impl Config {
    /// Parses the given variables; `instance` is the name to use if they give none.
    ///
    /// # Errors
    /// [`Problems`] with everything that is wrong.
    pub fn parse(vars: &BTreeMap<String, String>, instance: &str) -> Result<Self, Problems> {
        let mut read = Reader { vars, problems: Vec::new() };
        read.refuse_unknown();
        let database = read.database();
        let zookeeper_connect = read.zookeeper();
        let session_timeout = read.millis("ZOOKEEPER_SESSION_TIMEOUT_MS", 6000, 200, 600_000);
        let http_addr = read.http_addr();
        let instance = read.instance(instance);
        let (mode, writer) = read.mode_and_writer();
        let config = Self {
            database,
            db_connections_max: read.number("ORDER_DB_CONNECTIONS_MAX", 16, 1, 1000),
            db_lock_timeout: read.millis("ORDER_DB_LOCK_TIMEOUT_MS", 2000, 1, 600_000),
            db_idle_in_transaction: read.millis("ORDER_DB_IDLE_IN_TRANSACTION_MS", 2000, 1, 600_000),
            zookeeper_connect,
            session_timeout,
            http_addr,
            instance,
            mode,
            writer,
            lock_wait: read.millis("ORDER_LOCK_WAIT_MS", 5000, 1, 600_000),
            work: read.millis("ORDER_WORK_MS", 0, 0, 600_000),
            requests_max: read.number("ORDER_REQUESTS_MAX", 2048, 1, 1_000_000),
            shutdown_grace: read.millis("ORDER_SHUTDOWN_GRACE_MS", 10_000, 1, 600_000),
            faults_token: read.faults_token(),
        };
        for (name, timeout) in [
            ("ORDER_DB_LOCK_TIMEOUT_MS", config.db_lock_timeout),
            ("ORDER_DB_IDLE_IN_TRANSACTION_MS", config.db_idle_in_transaction),
        ] {
            if timeout >= config.session_timeout {
                read.problem(format!(
                    "{name} ({} ms) must be below ZOOKEEPER_SESSION_TIMEOUT_MS ({} ms), or a frozen holder's \
                     transaction outlives its lock and blocks the next one",
                    timeout.as_millis(),
                    config.session_timeout.as_millis()
                ));
            }
        }
        if read.problems.is_empty() { Ok(config) } else { Err(Problems(read.problems)) }
    }
}

struct Reader<'a> {
    vars: &'a BTreeMap<String, String>,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// An empty value is the same as none: compose files set variables that way.
    fn get(&self, name: &str) -> Option<&'a str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn refuse_unknown(&mut self) {
        for name in self.vars.keys() {
            if name.starts_with("ORDER_") && !KNOWN.contains(&name.as_str()) {
                self.problem(format!("{name} is not known; known are {}", KNOWN.join(", ")));
            }
        }
    }

    fn required(&mut self, name: &str, example: &str) -> Option<&'a str> {
        let value = self.get(name);
        if value.is_none() {
            self.problem(format!("{name} is required, for example {example}"));
        }
        value
    }

    fn number<T>(&mut self, name: &str, default: T, min: T, max: T) -> T
    where
        T: std::str::FromStr + PartialOrd + Copy + fmt::Display,
    {
        let Some(text) = self.get(name) else { return default };
        match text.parse::<T>() {
            Ok(number) if (min..=max).contains(&number) => number,
            _ => {
                self.problem(format!("{name} must be a whole number from {min} to {max}, not {text:?}"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str, default: u64, min: u64, max: u64) -> Duration {
        Duration::from_millis(self.number(name, default, min, max))
    }

    fn database(&mut self) -> PgConnectOptions {
        let example = "postgres://user:password@127.0.0.1:5432/lockstock";
        let parsed = self.required("DATABASE_URL", example).map(str::parse::<PgConnectOptions>);
        match parsed {
            Some(Ok(options)) => return options,
            // The parser's message may quote the password.
            Some(Err(_)) => self.problem(format!("DATABASE_URL is no PostgreSQL URL such as {example}")),
            None => {}
        }
        PgConnectOptions::new_without_pgpass()
    }

    fn zookeeper(&mut self) -> String {
        let connect = self.required("ZOOKEEPER_CONNECT", "127.0.0.1:2181/lockstock").unwrap_or_default();
        if !connect.is_empty()
            && let Err(error) = SessionConfig::new(connect)
        {
            self.problem(format!("ZOOKEEPER_CONNECT: {error}"));
        }
        connect.to_owned()
    }

    fn http_addr(&mut self) -> SocketAddr {
        let text = self.get("ORDER_HTTP_ADDR").unwrap_or("127.0.0.1:8080");
        text.parse().unwrap_or_else(|_| {
            self.problem(format!("ORDER_HTTP_ADDR must be an address and a port, not {text:?}"));
            SocketAddr::from(([127, 0, 0, 1], 0))
        })
    }

    fn instance(&mut self, default: &str) -> String {
        let name = self.get("ORDER_INSTANCE").unwrap_or(default);
        // PostgreSQL cuts application_name at 63 bytes; two instances must not become one there.
        if name.len() > 63 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.problem(format!("ORDER_INSTANCE must be 1 to 63 visible ASCII characters, not {name:?}"));
        }
        name.to_owned()
    }

    fn mode_and_writer(&mut self) -> (&'static Mode, Writer) {
        let name = self.get("ORDER_LOCK_MODE").unwrap_or("zk-fair");
        let mode = lockers::mode(name).unwrap_or_else(|| {
            let names: Vec<_> = MODES.iter().map(|mode| mode.name).collect();
            self.problem(format!("ORDER_LOCK_MODE must be one of {}, not {name:?}", names.join(", ")));
            &MODES[0]
        });
        let writer = match self.get("ORDER_WRITER") {
            None => mode.writers[0],
            Some("plain") => Writer::Plain,
            Some("fenced") => Writer::Fenced,
            Some(other) => {
                self.problem(format!("ORDER_WRITER must be plain or fenced, not {other:?}"));
                mode.writers[0]
            }
        };
        if mode.name == name && !mode.writers.contains(&writer) {
            let writer = writer.as_str();
            self.problem(format!("ORDER_WRITER={writer} needs a token; ORDER_LOCK_MODE={name} has none"));
        }
        (mode, writer)
    }

    fn faults_token(&mut self) -> Option<Secret> {
        let token = self.get("ORDER_FAULTS_TOKEN")?;
        if token.len() < FAULTS_TOKEN_LENGTH_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.problem(format!(
                "ORDER_FAULTS_TOKEN must be at least {FAULTS_TOKEN_LENGTH_MIN} visible ASCII characters"
            ));
        }
        Some(Secret(token.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(vars: &[(&str, &str)]) -> Result<Config, Problems> {
        let required =
            [("DATABASE_URL", "postgres://u:sesame@db/x"), ("ZOOKEEPER_CONNECT", "127.0.0.1:2181/lockstock")];
        let vars = required.iter().chain(vars).map(|(name, value)| (name.to_string(), value.to_string()));
        Config::parse(&vars.collect(), "host-1")
    }

    fn problems(vars: &[(&str, &str)]) -> Vec<String> {
        parse(vars).err().expect("problems").0
    }

    #[test]
    fn defaults() {
        let config = parse(&[]).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!((config.mode.name, config.writer), ("zk-fair", Writer::Fenced));
        assert_eq!(config.instance, "host-1");
        assert_eq!(config.lock_wait, Duration::from_secs(5));
        assert_eq!(config.session_timeout, Duration::from_secs(6));
        assert!(config.faults_token.is_none());
    }

    #[test]
    fn the_default_writer_is_the_first_of_the_mode() {
        let writer = |mode| parse(&[("ORDER_LOCK_MODE", mode)]).map(|config| config.writer).ok();
        assert_eq!(writer("none"), Some(Writer::Plain));
        assert_eq!(writer("zk-simple"), Some(Writer::Fenced));
    }

    #[test]
    fn all_problems_are_reported_at_once_and_each_names_its_variable() {
        let vars = BTreeMap::from(
            [
                ("ORDER_LOCK_MODE", "zk-unfair"),
                ("ORDER_WRITER", "careful"),
                ("ORDER_WORK_MS", "-1"),
                ("ORDER_REQUESTS_MAX", "0"),
                ("ORDER_HTTP_ADDR", "8080"),
                ("ORDER_FAULTS_TOKEN", "short"),
                ("ORDER_LOCK_WAIT_SECONDS", "5"),
                ("ORDER_DB_LOCK_TIMEOUT_MS", "6000"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let problems = Config::parse(&vars, "host-1").err().expect("problems").0;
        for name in vars.keys().map(String::as_str).chain(["DATABASE_URL", "ZOOKEEPER_CONNECT"]) {
            let naming = problems.iter().filter(|problem| problem.starts_with(name)).count();
            assert_eq!(naming, 1, "{name} in {problems:#?}");
        }
        assert_eq!(problems.len(), 10, "{problems:#?}");
    }

    #[test]
    fn none_cannot_be_fenced() {
        let problems = problems(&[("ORDER_LOCK_MODE", "none"), ("ORDER_WRITER", "fenced")]);
        assert!(problems[0].contains("ORDER_LOCK_MODE=none"), "{problems:?}");
    }

    #[test]
    fn no_secret_is_printed() {
        let vars = BTreeMap::from([("DATABASE_URL".to_owned(), "postgres://u:sesame@[x".to_owned())]);
        let problems = Config::parse(&vars, "host-1").err().expect("problems");
        assert!(!problems.to_string().contains("sesame"), "{problems}");
        let token =
            parse(&[("ORDER_FAULTS_TOKEN", "open-sesame")]).ok().and_then(|config| config.faults_token);
        let token = token.expect("a token");
        assert!(!format!("{token:?}").contains("sesame"));
        assert!(token.matches(b"open-sesame"));
        assert!(!token.matches(b"open-sesam") && !token.matches(b"open-sesamE") && !token.matches(b""));
    }
}
