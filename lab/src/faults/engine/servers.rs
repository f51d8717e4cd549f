//! Faults of the servers that replicas depend on.

use std::time::Instant;

use stack::{Container, EngineError};

use super::{EngineScene, Missed};

const PORT: u16 = 2181;
const GRACE_S: u32 = 10;

struct Server {
    service: String,
    container: Container,
}

impl Server {
    /// What `srvr` says it is; nothing if it does not serve.
    async fn mode(&self) -> Result<Option<String>, EngineError> {
        let answer = self.container.converse(PORT, "srvr").await?;
        Ok(answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned))
    }

    async fn connections(&self) -> Result<u64, EngineError> {
        let answer = self.container.converse(PORT, "srvr").await?;
        Ok(answer.lines().find_map(|line| line.strip_prefix("Connections: ")?.parse().ok()).unwrap_or(0))
    }
}

/// Those that are there: the light stack has one.
async fn ensemble(scene: &EngineScene<'_>) -> Result<Vec<Server>, EngineError> {
    let mut servers = Vec::new();
    for service in ["zoo1", "zoo2", "zoo3"] {
        match scene.project.container(service).await {
            Ok(container) => servers.push(Server { service: service.into(), container }),
            Err(EngineError::NoContainer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(servers)
}

pub(super) async fn kill_leader(scene: &EngineScene<'_>) -> Result<String, Missed> {
    let mut servers = ensemble(scene).await?;
    let mut at = None;
    for (index, server) in servers.iter().enumerate() {
        if server.mode().await?.as_deref() == Some("leader") {
            at = Some(index);
        }
    }
    let Some(at) = at else { return Err(Missed::Because("no server leads others".into())) };
    let leader = servers.swap_remove(at);
    let began = Instant::now();
    let undo = leader.container.kill().await?;
    let elected = async || {
        for server in &servers {
            if server.mode().await?.as_deref() == Some("leader") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let waited = scene.until("followed by another leader", &leader.container, elected).await;
    let took = began.elapsed();
    undo.now().await?;
    waited?;
    let follows = async || Ok(leader.mode().await?.as_deref() == Some("follower"));
    scene.until("a follower", &leader.container, follows).await?;
    Ok(format!("{} was killed; another led within {:.1} s", leader.service, took.as_secs_f64()))
}

/// It goes on answering its clients for a while, and knows nothing of what the others decide.
pub(super) async fn cut_off_its_peers(scene: &EngineScene<'_>) -> Result<String, Missed> {
    let mut busiest: Option<(u64, Server)> = None;
    for server in ensemble(scene).await? {
        if server.mode().await?.as_deref() == Some("follower") {
            let connections = server.connections().await?;
            if busiest.as_ref().is_none_or(|(most, _)| connections > *most) {
                busiest = Some((connections, server));
            }
        }
    }
    let Some((clients, server)) = busiest else { return Err(Missed::Because("no server follows".into())) };
    let alias = format!("{}.quorum", server.service);
    let undo = server.container.disconnect(&scene.project.network("quorum"), &alias).await?;
    let began = Instant::now();
    let mut last_answer = None;
    let noticed = async || {
        let answers = server.mode().await?.is_some();
        if answers {
            last_answer = Some(began.elapsed());
        }
        Ok(!answers)
    };
    let waited = scene.until("aware that it is alone", &server.container, noticed).await;
    undo.now().await?;
    waited?;
    scene.until("serving again", &server.container, async || Ok(server.mode().await?.is_some())).await?;
    match last_answer {
        Some(time) => Ok(format!(
            "{} served {clients} clients for {:.1} s more without its peers",
            server.service,
            time.as_secs_f64()
        )),
        None => Err(Missed::Because(format!("{} served nobody once it was cut off", server.service))),
    }
}

pub(super) async fn restart_postgres(scene: &EngineScene<'_>) -> Result<String, Missed> {
    let server = scene.project.container("postgres").await?;
    let before = server.started_at().await?;
    let began = Instant::now();
    server.restart(GRACE_S).await?;
    scene.until("started again", &server, async || Ok(server.started_at().await? != before)).await?;
    Ok(format!("the database was restarted within {:.1} s", began.elapsed().as_secs_f64()))
}
