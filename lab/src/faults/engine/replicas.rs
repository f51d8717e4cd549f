//! Faults of replicas.

use loadtest::history::now_ms;
use stack::{Container, EngineError};

use super::{EngineScene, Missed, Strike};

/// Longer than `ORDER_SHUTDOWN_GRACE_MS`, so that what is in flight is answered.
const GRACE_S: u32 = 15;
const PORT: u16 = 8080;
/// The service's words for a new session.
const ESTABLISHED: &str = "established";

/// Whether it would serve a request.
pub(super) async fn ready(replica: &Container) -> Result<bool, EngineError> {
    let answer = replica.converse(PORT, "GET /readyz HTTP/1.0\r\n\r\n").await?;
    Ok(answer.lines().next().is_some_and(|line| line.contains(" 200 ")))
}

pub(super) async fn expire(scene: &EngineScene<'_>, holder: &Container) -> Result<String, Missed> {
    let Some(token) = &scene.faults_token else {
        return Err(Missed::Because("the stack has no fault endpoints: set ORDER_FAULTS_TOKEN".into()));
    };
    let since = now_ms();
    let request = format!(
        "POST /faults/session/expire HTTP/1.1\r\nHost: replica\r\nX-Fault-Token: {token}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let answer = holder.converse(PORT, &request).await?;
    if !answer.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        return Err(Missed::Because(format!("{} did not end its session: {answer}", holder.name())));
    }
    let said = answer.lines().last().unwrap_or_default().to_owned();
    new_session(scene, holder, since).await?;
    Ok(format!("{} lost its session and built another: {said}", holder.name()))
}

pub(super) async fn freeze(scene: &EngineScene<'_>, strike: &mut Strike) -> Result<String, Missed> {
    let (holder, undo) = scene.hit(strike, async |holder| holder.pause().await).await?;
    tokio::time::sleep(scene.broken).await;
    undo.now().await?;
    new_session(scene, &holder, strike.at_ms).await?;
    Ok(format!("{} stood still for {:.1} s and lost its session", holder.name(), scene.broken.as_secs_f64()))
}

pub(super) async fn cut(scene: &EngineScene<'_>, strike: &mut Strike) -> Result<String, Missed> {
    let network = scene.project.network("front");
    let (holder, undo) =
        scene.hit(strike, async |holder| holder.disconnect(&network, "order-service").await).await?;
    tokio::time::sleep(scene.broken).await;
    undo.now().await?;
    new_session(scene, &holder, strike.at_ms).await?;
    Ok(format!("{} was alone for {:.1} s and lost its session", holder.name(), scene.broken.as_secs_f64()))
}

pub(super) async fn kill(scene: &EngineScene<'_>, strike: &mut Strike) -> Result<String, Missed> {
    let (holder, undo) = scene.hit(strike, async |holder| holder.kill().await).await?;
    let before = holder.started_at().await?;
    undo.now().await?;
    scene.until("started again", &holder, async || Ok(holder.started_at().await? != before)).await?;
    let gone_s = (now_ms() - strike.at_ms) / 1000.0;
    Ok(format!("{} was killed and was gone for {gone_s:.1} s", holder.name()))
}

pub(super) async fn restart_all(scene: &EngineScene<'_>) -> Result<String, Missed> {
    let replicas = scene.project.containers("order-service").await?;
    for replica in &replicas {
        let before = replica.started_at().await?;
        replica.restart(GRACE_S).await?;
        scene.until("started again", replica, async || Ok(replica.started_at().await? != before)).await?;
        scene.until("ready again", replica, async || ready(replica).await).await?;
    }
    Ok(format!("{} replicas were restarted, one after the other", replicas.len()))
}

async fn new_session(scene: &EngineScene<'_>, replica: &Container, since_ms: f64) -> Result<(), Missed> {
    let shows = async || Ok(replica.log_since(since_ms).await?.contains(ESTABLISHED));
    scene.until("told that it has a new session", replica, shows).await
}
