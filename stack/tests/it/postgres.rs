//! PostgreSQL starts, stops, is killed, starts again, and keeps what was committed.

use std::{borrow::Cow, fs::DirBuilder, os::unix::fs::DirBuilderExt as _, time::Duration};

use nix::unistd::Uid;
use sqlx::{Connection as _, PgConnection};
use stack::{Exit, Postgres, RunDir};

use crate::{kill, until, victim::Victim};

const SOON: Duration = Duration::from_secs(20);

async fn count(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.expect("it answers");
    sqlx::query_scalar("SELECT count(*) FROM kept")
        .fetch_one(&mut connection)
        .await
        .expect("the table is there")
}

#[tokio::test]
async fn keeps_its_data_through_a_stop_and_a_kill() {
    let dir = RunDir::disposable("test").expect("a folder");
    let postgres = Postgres::start(&dir).await.expect("it starts");
    let url = postgres.create_database("shop").await.expect("a database");
    let mut connection = PgConnection::connect(&url).await.expect("it answers");
    sqlx::raw_sql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)")
        .execute(&mut connection)
        .await
        .expect("a table");

    postgres.stop().await;
    assert_eq!(postgres.child().exit(), Some(Exit::Code(0)), "a fast shutdown, with a client connected");
    assert!(PgConnection::connect(&url).await.is_err());
    postgres.start_again().await.expect("it starts again");
    assert_eq!(count(&url).await, 1);

    // A backend that computes does not look up when its postmaster is killed.
    let mut busy = PgConnection::connect(&url).await.expect("it answers");
    let busy = tokio::spawn(async move {
        let statement = "SELECT count(*) FROM generate_series(1, 1000000000000)";
        sqlx::raw_sql(statement).execute(&mut busy).await.map(drop)
    });
    let mut watcher = PgConnection::connect(&url).await.expect("it answers");
    let mut active = 0;
    while active == 0 {
        let query = "SELECT count(*) FROM pg_stat_activity \
                     WHERE state = 'active' AND query LIKE '%generate_series%' AND pid <> pg_backend_pid()";
        active = sqlx::query_scalar::<_, i64>(query).fetch_one(&mut watcher).await.expect("it answers");
    }
    let former = postgres.child();
    postgres.kill().await;
    assert_eq!(former.exit(), Some(Exit::Signal(9)));
    busy.await.expect("no panic").expect_err("its server was killed");
    postgres.start_again().await.expect("it recovers");
    assert_eq!(count(&url).await, 1);

    // Here the backends are left alone, and hold the shared memory that a new server wants.
    let waiting = PgConnection::connect(&url).await.expect("it answers");
    postgres.child().kill();
    postgres.child().wait_exit(SOON).await.expect("it ends");
    postgres.start_again().await.expect("it starts beside what the kill left");
    assert_eq!(count(&url).await, 1);
    drop(waiting);
    assert!(dir.watchdog().deaths().is_empty(), "all of it was asked for");
}

#[tokio::test]
async fn a_death_that_nobody_asked_for_is_noticed() {
    let dir = RunDir::disposable("test").expect("a folder");
    let postgres = Postgres::start(&dir).await.expect("it starts");
    let pid = postgres.child().pid();
    kill(pid);
    let death = dir.watchdog().first_death().await;
    assert_eq!((death.name.as_str(), death.pid, death.exit), ("postgres", pid, Exit::Signal(9)));
    assert!(death.log_tail.contains("ready to accept connections"), "{death}");
}

#[tokio::test]
async fn nobody_gets_in_without_the_password() {
    let shared = stack::testing::shared().await;
    let url = shared.fresh_database().await;
    let (head, tail) = url.split_once('@').expect("user and password");
    let (user, _) = head.rsplit_once(':').expect("a password");
    let refused = PgConnection::connect(&format!("{user}:wrong@{tail}")).await;
    let code = refused.err().and_then(|error| error.as_database_error()?.code().map(Cow::into_owned));
    assert_eq!(code.as_deref(), Some("28P01"));
    let name = "a\"; DROP DATABASE postgres; --";
    assert!(shared.postgres().create_database(name).await.is_err(), "only plain names");
}

#[tokio::test]
async fn dropping_it_leaves_no_process() {
    let dir = RunDir::disposable("test").expect("a folder");
    let postgres = Postgres::start(&dir).await.expect("it starts");
    let child = postgres.child();
    child.pause();
    drop(postgres);
    until("its end", || async { !child.is_running() }).await;
}

#[tokio::test]
async fn a_folder_that_its_user_cannot_enter_is_named() {
    let dir = RunDir::disposable("test").expect("a folder");
    let closed = dir.sub("closed");
    DirBuilder::new().mode(0o700).create(&closed).expect("a folder");
    let closed = closed.to_str().expect("a plain path");
    let victim = Victim::start("postgres", &[("LOCKSTOCK_RUN_BASE", closed)]);
    let reason = victim.said["reason"].as_str();
    // Only root becomes somebody else to run it.
    if Uid::effective().is_root() {
        let reason = reason.expect("it does not start");
        assert!(reason.contains(closed) && reason.contains("LOCKSTOCK_RUN_BASE"), "{reason}");
    } else {
        assert_eq!(reason, None);
    }
    victim.join();
}
