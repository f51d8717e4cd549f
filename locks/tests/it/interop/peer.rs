//! A process that speaks Curator or kazoo, and its hands: each acquires and releases on its own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{Place, SOON};

/// A JVM that compiles its program first, while other tests run.
const START: Duration = Duration::from_mins(1);
/// Longer than a peer's own patience with a lock.
const ANSWER: Duration = Duration::from_secs(90);
/// How long a peer waits where it is to wait in vain.
const IN_VAIN: Duration = Duration::from_millis(300);
/// Debian's jars name each other in their manifests.
const DEBIAN_CLASSPATH: &str = "/usr/share/java/slf4j-simple.jar:/usr/share/java/curator-recipes.jar";

type Answers = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<String>>>>;

/// The process. It ends when this is dropped, and by itself when the test's process is killed: its input ends.
pub(super) struct Peer {
    /// What it said of itself when it was ready.
    pub(super) version: String,
    commands: mpsc::UnboundedSender<String>,
    answers: Answers,
    process: Child,
}

impl Peer {
    pub(super) async fn curator(place: &Place) -> Self {
        let jars = std::env::var_os("CURATOR_CLASSPATH").unwrap_or_else(|| DEBIAN_CLASSPATH.into());
        let missing = std::env::split_paths(&jars).find(|jar| !jar.ends_with("*") && !jar.exists());
        assert!(
            missing.is_none(),
            "Apache Curator is missing (looked for {}): scripts/setup installs it, or set CURATOR_CLASSPATH to its jars",
            missing.unwrap_or_default().display(),
        );
        let java = std::env::var_os("JAVA_HOME")
            .map_or_else(|| "java".into(), |home| Path::new(&home).join("bin/java").into_os_string());
        let options = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-XX:TieredStopAtLevel=1", "-Xmx256m"];
        let mut command = Command::new(java);
        command.args(options).arg("-cp").arg(jars).arg(program("CuratorPeer.java"));
        Self::start(command, "a Java runtime with its compiler", place).await
    }

    pub(super) async fn kazoo(place: &Place) -> Self {
        let mut command = Command::new(python_with_kazoo().await);
        command.arg(program("kazoo_peer.py"));
        Self::start(command, "Python", place).await
    }

    async fn start(mut command: Command, what: &str, place: &Place) -> Self {
        let hosts = place.connect.strip_suffix(&place.chroot).unwrap();
        command.arg(hosts).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let advice = format!("{what} does not start the peer: scripts/setup installs what it needs");
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{advice}: {error}"));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = timeout(START, lines.next_line()).await.ok().and_then(Result::ok).flatten();
        let ready = ready.unwrap_or_else(|| panic!("{advice} (it has said why above)"));
        let version = ready.strip_prefix("ready ").unwrap().to_owned();

        let (commands, mut told) = mpsc::unbounded_channel::<String>();
        let mut input = process.stdin.take().unwrap();
        tokio::spawn(async move {
            while let Some(command) = told.recv().await {
                input.write_all(command.as_bytes()).await.unwrap();
            }
        });
        let answers = Answers::default();
        tokio::spawn(hand_out(lines, Arc::clone(&answers)));
        Self { version, commands, answers, process }
    }

    /// Kills it, with whatever it holds.
    pub(super) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    /// A hand: with Curator a thread, to which its locks belong.
    pub(super) fn hand(&self, name: &str) -> Hand {
        let (sender, answers) = mpsc::unbounded_channel();
        self.answers.lock().unwrap().insert(name.to_owned(), sender);
        Hand { name: name.to_owned(), commands: self.commands.clone(), answers }
    }
}

async fn hand_out(mut lines: Lines<BufReader<ChildStdout>>, answers: Answers) {
    while let Some(line) = lines.next_line().await.unwrap() {
        let (hand, answer) = line.split_once(' ').unwrap_or((&line, ""));
        let hand = answers.lock().unwrap().get(hand).cloned();
        // A test that is over listens no more.
        let _unheard = hand.is_none_or(|hand| hand.send(answer.to_owned()).is_err());
    }
}

fn program(name: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name).into()
}

/// Debian's kazoo belongs to Debian's Python, which need not be the first in the path.
async fn python_with_kazoo() -> &'static str {
    for python in ["python3", "/usr/bin/python3"] {
        let import = Command::new(python).args(["-c", "import kazoo.client"]).stderr(Stdio::null()).status();
        if import.await.is_ok_and(|status| status.success()) {
            return python;
        }
    }
    panic!("kazoo is missing (neither python3 nor /usr/bin/python3 has it): scripts/setup installs it");
}

pub(super) struct Hand {
    name: String,
    commands: mpsc::UnboundedSender<String>,
    answers: mpsc::UnboundedReceiver<String>,
}

impl Hand {
    /// Sends a command, and does not wait.
    pub(super) fn tell(&self, command: &str) {
        self.commands.send(format!("{} {command}\n", self.name)).unwrap();
    }

    pub(super) async fn answer(&mut self) -> String {
        let answer = timeout(ANSWER, self.answers.recv()).await;
        answer.ok().flatten().unwrap_or_else(|| panic!("{} does not answer", self.name))
    }

    pub(super) async fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer().await
    }

    /// Begins to wait for a lock.
    pub(super) fn queue(&self, kind: &str, path: &str) {
        self.tell(&format!("acquire {kind} {path} {}", SOON.as_millis()));
    }

    /// Waits for a lock that it is to get.
    pub(super) async fn acquire(&mut self, kind: &str, path: &str) {
        self.queue(kind, path);
        assert_eq!(self.answer().await, "held", "{} wants {kind}", self.name);
    }

    /// Tries for a lock long enough to get it if nobody is in the way: whether it did. Does not keep it.
    pub(super) async fn can_acquire(&mut self, kind: &str, path: &str) -> bool {
        let answer = self.ask(&format!("acquire {kind} {path} {}", IN_VAIN.as_millis())).await;
        match answer.as_str() {
            "held" => self.release(kind, path).await,
            "timeout" => return false,
            other => panic!("{} wants {kind}: {other}", self.name),
        }
        true
    }

    pub(super) async fn release(&mut self, kind: &str, path: &str) {
        assert_eq!(self.ask(&format!("release {kind} {path}")).await, "released", "{}", self.name);
    }

    /// Whether it has not answered yet.
    pub(super) fn is_silent(&self) -> bool {
        self.answers.is_empty()
    }
}
