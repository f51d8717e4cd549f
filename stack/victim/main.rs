//! A process for tests to kill, or to run with another environment. Each role prints one JSON document when it is
//! where the test wants it.
//!
//! `stack`: starts everything, keeps one backend waiting and one computing, freezes two children, waits for its end.
//! `missing`: says what is not installed. `postgres`: says why it does not start, if so. `fleet`: starts, loses, restarts and stops a fleet.
//! Called `order-service`, it is a stand-in for one: it answers every request with its environment.

use std::{
    env, error, future,
    io::{Read as _, Write as _},
    net::TcpListener,
    time::Duration,
};

use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use stack::{Fleet, FleetConfig, Postgres, RunDir, Stack, ZooKeeperConfig, programs};

type Outcome = Result<(), Box<dyn error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let called = env::args().next().unwrap_or_default();
    if called.ends_with("order-service") {
        return stand_in();
    }
    match env::args().nth(1).as_deref() {
        Some("stack") => wait_to_be_killed().await,
        Some("missing") => missing().await,
        Some("postgres") => postgres().await,
        Some("fleet") => fleet().await,
        other => Err(format!("no such role: {other:?}").into()),
    }
}

async fn wait_to_be_killed() -> Outcome {
    let dir = RunDir::disposable("victim")?;
    let stack = Stack::start(dir, ZooKeeperConfig { servers: 2, ..Default::default() }).await?;
    let url = stack.postgres().url("postgres");
    let computing =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12) SELECT max(i) FROM n";
    for statement in ["SELECT pg_sleep(600)", computing] {
        let mut connection = PgConnection::connect(&url).await?;
        tokio::spawn(async move { sqlx::raw_sql(statement).execute(&mut connection).await.map(drop) });
    }
    let mut watcher = PgConnection::connect(&url).await?;
    let active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
    while sqlx::query_scalar::<_, i64>(active).fetch_one(&mut watcher).await? < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A frozen child cannot react to anything but SIGKILL.
    stack.zookeeper().server(0).pause();
    stack.postgres().child().pause();
    let children = [stack.zookeeper().server(0), stack.zookeeper().server(1), stack.postgres().child()];
    let pids = children.map(|child| child.pid());
    println!("{}", json!({ "dir": stack.dir().path(), "children": pids }));
    future::pending().await
}

async fn missing() -> Outcome {
    let missing = programs::check_all().err().unwrap_or_default();
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let dir = RunDir::disposable("victim")?;
    let refused = Stack::start(dir, ZooKeeperConfig::default()).await.err().map(|error| error.to_string());
    println!("{}", json!({ "missing": missing, "refused": refused }));
    Ok(())
}

async fn postgres() -> Outcome {
    let dir = RunDir::disposable("victim")?;
    let refused = Postgres::start(&dir).await.err();
    let reason = refused.as_ref().and_then(error::Error::source).map(ToString::to_string);
    println!("{}", json!({ "reason": reason }));
    Ok(())
}

async fn fleet() -> Outcome {
    let dir = RunDir::disposable("victim")?;
    let config = FleetConfig {
        name: "orders".into(),
        replicas: 2,
        mode: "zk-fair".into(),
        writer: "fenced".into(),
        database_url: "postgres://nowhere/db".into(),
        zookeeper_connect: "127.0.0.1:1/chroot".into(),
        session_timeout: Duration::from_secs(2),
        lock_wait: Duration::from_secs(3),
        work: Duration::from_millis(4),
        faults_token: Some("open sesame".into()),
        extra_env: vec![("ORDER_WORK_MS".into(), "5".into())],
    };
    let fleet = Fleet::start(&dir, config).await?;
    let replica = &fleet.replicas()[1];
    let environment: serde_json::Value = reqwest::get(replica.url()).await?.json().await?;
    let lost = replica.child();
    signal::kill(Pid::from_raw(lost.pid().cast_signed()), Signal::SIGKILL)?;
    let death = dir.watchdog().first_death().await;
    let ready_when_dead = replica.ready().await.is_ok();
    fleet.start_replica(1).await?;
    let ready_again = replica.ready().await.is_ok();
    let exits = fleet.stop(Duration::from_secs(5)).await;
    let exits: Vec<String> = exits.iter().map(|(name, exit)| format!("{name}: {exit}")).collect();
    let deaths = dir.watchdog().deaths().len();
    println!(
        "{}",
        json!({
            "environment": environment, "death": death.to_string(), "deaths": deaths, "exits": exits,
            "ready_when_dead": ready_when_dead, "ready_again": ready_again,
        })
    );
    Ok(())
}

/// Ends by SIGTERM, with the signal's own default.
fn stand_in() -> Outcome {
    println!("stand-in started");
    let listener = TcpListener::bind(env::var("ORDER_HTTP_ADDR")?)?;
    let ours =
        |name: &str| ["ORDER_", "DATABASE_URL", "ZOOKEEPER_"].iter().any(|prefix| name.starts_with(prefix));
    let environment: serde_json::Map<String, serde_json::Value> =
        env::vars().filter(|(name, _)| ours(name)).map(|(name, value)| (name, value.into())).collect();
    let body = serde_json::Value::from(environment).to_string();
    loop {
        let (mut client, _) = listener.accept()?;
        let mut request = [0; 4096];
        if client.read(&mut request)? > 0 {
            let length = body.len();
            write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
        }
    }
}
