//! A compose project of a test's own, on ports of its own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use stack::{ComposeProject, RunDir, ports};
use testcontainers::compose::DockerCompose;
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};

use crate::run::Run;

/// Two cores carry one stack.
static TURN: Mutex<()> = Mutex::const_new(());
const HEALTHY: Duration = Duration::from_mins(4);
const BOUND: Duration = Duration::from_mins(5);
const PORTS: [&str; 10] = [
    "ENTRY_PORT",
    "POSTGRES_PORT",
    "ZOOKEEPER_PORT_1",
    "ZOOKEEPER_PORT_2",
    "ZOOKEEPER_PORT_3",
    "JAEGER_PORT",
    "OTLP_GRPC_PORT",
    "OTLP_HTTP_PORT",
    "PROMETHEUS_PORT",
    "GRAFANA_PORT",
];

/// A stack that is up and healthy; it goes with this value, and its volumes with it.
pub(crate) struct Project {
    name: String,
    compose: DockerCompose,
    /// Of every command that concerns it: project, files, ports, settings.
    env: Vec<(String, String)>,
    base: RunDir,
    _turn: MutexGuard<'static, ()>,
}

impl Project {
    /// Nothing of it runs yet.
    pub(crate) async fn of(what: &str, settings: &[(&str, &str)]) -> Self {
        let turn = TURN.lock().await;
        expect_an_engine().await;
        let name = format!("lockstock-{what}-{}", std::process::id());
        let base = RunDir::disposable("compose-test").expect("a folder");
        let files = files();
        let named: Vec<&str> = files.iter().map(|file| file.to_str().expect("UTF-8")).collect();
        let mut env = vec![
            ("COMPOSE_PROJECT_NAME".to_owned(), name.clone()),
            ("COMPOSE_FILE".to_owned(), named.join(":")),
            // A developer's .env is another stack's business.
            ("COMPOSE_DISABLE_ENV_FILE".to_owned(), "1".to_owned()),
        ];
        let free = ports::free(PORTS.len()).expect("free ports");
        env.extend(PORTS.iter().zip(free).map(|(port, number)| ((*port).to_owned(), number.to_string())));
        env.extend(settings.iter().map(|(setting, value)| ((*setting).to_owned(), (*value).to_owned())));
        let compose = DockerCompose::with_local_client(files.as_slice())
            .with_project_name(&name)
            .with_env_vars(env.iter().cloned().collect())
            // Its own wait ends after a minute, which is not much on a machine that compiled a moment ago.
            .with_wait(false);
        Self { name, compose, env, base, _turn: turn }
    }

    /// Brings it up, and waits until all of it is healthy.
    pub(crate) async fn up(what: &str, settings: &[(&str, &str)]) -> Self {
        let mut project = Self::of(what, settings).await;
        if let Err(error) = project.compose.up().await {
            // Once everything is up it lists the containers, in words of a newer engine than Debian's. We need no list.
            let error = format!("{error:?}");
            assert!(error.contains("Maximum supported API version"), "docker compose up: {error}");
        }
        project.expect_healthy().await;
        project
    }

    /// Takes it down, and says if that fails.
    pub(crate) async fn down(self) {
        self.compose.down().await.expect("the stack goes");
    }

    async fn expect_healthy(&self) {
        let begun = Instant::now();
        let all = self
            .command("docker")
            .args(["compose", "ps", "--all", "--format", "{{.Service}} {{.Status}}"])
            .output();
        let listed = String::from_utf8(all.await.expect("docker runs").stdout).expect("UTF-8");
        let project = ComposeProject::new(&self.name);
        for service in listed.lines().filter_map(|line| line.split(' ').next()) {
            if service == "secrets" {
                continue;
            }
            for container in project.containers(service).await.expect("containers") {
                loop {
                    let health = container.health().await.expect("a state");
                    if health == "healthy" {
                        break;
                    }
                    assert!(
                        begun.elapsed() < HEALTHY,
                        "{} is {health} after {HEALTHY:?}:\n{listed}",
                        container.name()
                    );
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        assert!(listed.contains("order-service") && listed.contains("jaeger"), "what is up: {listed:?}");
        eprintln!("{}: healthy {:.1} s after `up`", self.name, begun.elapsed().as_secs_f64());
    }

    /// The experiment, with faults.
    pub(crate) async fn oversell(&self, faults: &[&str]) -> Run {
        let mut command = self.command(env!("CARGO_BIN_EXE_lockstock"));
        command.args(["--json", "run", "oversell", "--stack", "compose", "--project", &self.name]);
        command.args(["--users", "30", "--fault", &faults.join("+")]);
        command.env("LOCKSTOCK_RUN_BASE", self.base.path());
        let output = command.output().await.expect("lockstock runs");
        Run::read(output.status, &output.stdout)
    }

    /// A program that concerns the stack, in the repository's folder.
    pub(crate) async fn expect_success(&self, program: &str, arguments: &[&str]) {
        let run = self.command(program).args(arguments).kill_on_drop(true).status();
        let status = tokio::time::timeout(BOUND, run).await.expect("it ends in time").expect("it runs");
        assert!(status.success(), "{program}: {status}, see above");
    }

    /// A program out of the image of a service.
    pub(crate) async fn copy_out(&self, service: &str, program: &str, to: &Path) {
        let file = std::fs::File::create(to).expect("a file");
        let cat =
            ["compose", "run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "cat", service, program];
        let status = self.command("docker").args(cat).stdout(file).status().await.expect("docker runs");
        assert!(status.success(), "{program} of {service}: {status}");
        std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(root()).envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }
}

/// The files of the stack: those that `COMPOSE_FILE` names, as everywhere.
fn files() -> Vec<PathBuf> {
    let named = std::env::var("COMPOSE_FILE").unwrap_or_else(|_| "compose.yaml".into());
    named.split(':').map(|file| root().join(file)).collect()
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

async fn expect_an_engine() {
    for arguments in [["compose", "version"], ["info", "--format={{.ServerVersion}}"]] {
        let asked = Command::new("docker").args(arguments).stdin(Stdio::null()).output().await;
        let works = asked.as_ref().is_ok_and(|output| output.status.success());
        assert!(
            works,
            "docker {}: {asked:?}\nThese tests need Docker with its plugin Compose v2, and its engine running. \
             On Debian `scripts/compose-offline prepare` installs both (as root); `make test-compose` does that by itself.",
            arguments.join(" ")
        );
    }
}
