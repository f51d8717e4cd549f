//! A Docker Compose project that runs: its containers, and what can be done to them through the `docker` client.
//!
//! Promised: containers are found by the labels that compose gives them, so no compose file is needed; nothing is made
//! or removed; what [`Container::kill`], [`Container::pause`] or [`Container::disconnect`] broke is mended when the
//! returned value is dropped. Not promised: anything about an engine that does not answer, but that it is given up after a bound.

mod container;
mod docker;

pub use container::Container;
pub use docker::{EngineError, Undo};

use docker::docker;

/// A project, by its name.
#[derive(Debug, Clone)]
pub struct ComposeProject {
    name: String,
}

impl ComposeProject {
    /// A project; whether it runs shows when it is asked for something.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All containers of a service that exist, running or not, without those of `docker compose run`.
    ///
    /// # Errors
    /// The engine did not answer, or there is none.
    pub async fn containers(&self, service: &str) -> Result<Vec<Container>, EngineError> {
        let labels = [
            format!("label=com.docker.compose.project={}", self.name),
            format!("label=com.docker.compose.service={service}"),
            "label=com.docker.compose.oneoff=False".to_owned(),
        ];
        let filters = labels.iter().flat_map(|label| ["--filter", label.as_str()]);
        let ids = docker(["ps", "--all", "--quiet", "--no-trunc"].into_iter().chain(filters)).await?;
        let mut found: Vec<Container> = ids.lines().map(|id| Container::new(id, service)).collect();
        if found.is_empty() {
            return Err(EngineError::NoContainer { project: self.name.clone(), service: service.to_owned() });
        }
        found.sort_by(|a, b| a.id().cmp(b.id()));
        Ok(found)
    }

    /// The container of a service of which there is one.
    ///
    /// # Errors
    /// As [`containers`](Self::containers).
    pub async fn container(&self, service: &str) -> Result<Container, EngineError> {
        Ok(self.containers(service).await?.swap_remove(0))
    }

    /// What the engine calls a network of the project.
    pub fn network(&self, name: &str) -> String {
        format!("{}_{name}", self.name)
    }
}
