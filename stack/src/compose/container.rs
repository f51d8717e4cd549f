//! One container of a project.

use std::{collections::HashMap, net::SocketAddr};

use super::docker::{EngineError, Undo, docker, docker_says, docker_stdout};

/// A container that exists; it may run or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    id: String,
    service: String,
}

impl Container {
    pub(super) fn new(id: &str, service: &str) -> Self {
        Self { id: id.to_owned(), service: service.to_owned() }
    }

    /// Its full id. The first twelve digits are its host name, by which our services name themselves.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its service and the digits of its id that people use.
    pub fn name(&self) -> String {
        format!("{} {}", self.service, self.id.get(..12).unwrap_or(&self.id))
    }

    /// Where a port of it is published.
    ///
    /// # Errors
    /// It is not published, or the container does not run.
    pub async fn address(&self, port: u16) -> Result<SocketAddr, EngineError> {
        let said = docker(["port", self.id(), &format!("{port}/tcp")]).await?;
        said.lines()
            .find_map(|line| line.parse().ok())
            .ok_or_else(|| EngineError::Strange { command: format!("port {} {port}", self.id), said })
    }

    /// The variables of its process.
    pub async fn env(&self) -> Result<HashMap<String, String>, EngineError> {
        let said = self.inspect("{{json .Config.Env}}").await?;
        let lines: Vec<String> = serde_json::from_str(&said)
            .map_err(|_| EngineError::Strange { command: format!("inspect {}", self.id), said })?;
        Ok(lines
            .iter()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }

    /// When it was started last, as the engine writes it.
    pub async fn started_at(&self) -> Result<String, EngineError> {
        self.inspect("{{.State.StartedAt}}").await
    }

    /// What its health check says: `healthy`, `unhealthy`, `starting`; or `none`.
    pub async fn health(&self) -> Result<String, EngineError> {
        self.inspect("{{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}").await
    }

    async fn inspect(&self, format: &str) -> Result<String, EngineError> {
        docker(["inspect", "--format", format, self.id()]).await
    }

    /// What it wrote to its log since a moment, in milliseconds since the Unix epoch.
    pub async fn log_since(&self, at_ms: f64) -> Result<String, EngineError> {
        docker_says(&["logs", "--since", &format!("{:.3}", at_ms / 1000.0), self.id()]).await
    }

    /// Sends some text to one of its own ports, from within, and gives what came back within some seconds. Empty if
    /// nobody listens. It has to have bash; a port need not be published.
    pub async fn converse(&self, port: u16, text: &str) -> Result<String, EngineError> {
        let script = r#"exec 3<>/dev/tcp/127.0.0.1/$0 && printf %s "$1" >&3 && timeout 5 cat <&3"#;
        docker_stdout(&["exec", self.id(), "bash", "-c", script, &port.to_string(), text]).await
    }

    /// The text of a file in it.
    pub async fn read(&self, path: &str) -> Result<String, EngineError> {
        docker(["exec", self.id(), "cat", path]).await
    }

    /// Ends its process with SIGKILL. The engine does not start it again by itself; mended, it runs.
    pub async fn kill(&self) -> Result<Undo, EngineError> {
        Undo::after(&["kill", self.id()], &["start", self.id()]).await
    }

    /// Stops and starts it.
    pub async fn restart(&self, grace_s: u32) -> Result<(), EngineError> {
        docker(["restart", "--time", &grace_s.to_string(), self.id()]).await.map(drop)
    }

    /// Freezes all its processes; mended, they go on.
    pub async fn pause(&self) -> Result<Undo, EngineError> {
        Undo::after(&["pause", self.id()], &["unpause", self.id()]).await
    }

    /// Cuts it off a network; mended, it is known there by `alias` again.
    pub async fn disconnect(&self, network: &str, alias: &str) -> Result<Undo, EngineError> {
        let connect = ["network", "connect", "--alias", alias, network, self.id()];
        Undo::after(&["network", "disconnect", network, self.id()], &connect).await
    }
}
