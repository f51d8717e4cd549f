//! `status`: what runs and where.

use std::time::Duration;

use lab::supervisor::{Home, Phase};
use lab::verdict::Exit;
use stack::{Seen, Status};

use super::Context;
use super::args::HomeArgs;
use super::outcome::{Outcome, Stop};

const ANSWER: Duration = Duration::from_secs(2);

pub(crate) async fn status(context: &Context, args: &HomeArgs) -> Outcome {
    let running = Home::find(args.run_dir.as_deref())?.running()?;
    if running.state.phase != Phase::Ready {
        let phase = format!("{:?}", running.state.phase).to_lowercase();
        return Err(Stop::Failure(anyhow::anyhow!(
            "the stack is {phase}; see {}",
            running.state.run_dir.display()
        )));
    }
    let mut status = running.status()?;
    // What the supervisor wrote is as old as the stack; readiness is asked now.
    let asked = status.services.iter().map(|service| ready(&service.url));
    let answers = futures::future::join_all(asked).await;
    for (service, ready) in status.services.iter_mut().zip(answers) {
        service.ready = ready;
    }
    context.result(&status, || text(&status))?;
    Ok(Exit::Valid)
}

async fn ready(url: &str) -> bool {
    let Ok(client) = reqwest::Client::builder().no_proxy().timeout(ANSWER).build() else { return false };
    client.get(format!("{url}/readyz")).send().await.is_ok_and(|answer| answer.status().is_success())
}

/// The addresses of a stack, for people.
pub(crate) fn text(status: &Status) -> String {
    let mut lines = vec![
        format!("run folder   {}", status.run_dir.display()),
        format!("supervisor   process {}", status.supervisor_pid),
        format!("PostgreSQL   {}", status.postgres.url),
        format!("ZooKeeper    {}", status.zookeeper.connect),
    ];
    lines.extend(status.services.iter().map(|service| {
        let ready = if service.ready { "ready" } else { "NOT READY" };
        format!(
            "{:<12} {}  process {}, {}/{}, {ready}",
            service.name, service.url, service.pid, service.mode, service.writer
        )
    }));
    if let Some(watchers) = &status.observatory {
        for (what, seen) in [("Jaeger", &watchers.jaeger), ("Prometheus", &watchers.prometheus)] {
            lines.push(match seen {
                Seen::At(url) => format!("{what:<12} {url}"),
                Seen::Not(why) => format!("{what:<12} goes on without: {why}"),
            });
        }
    }
    lines.join("\n")
}
