//! Replicas beside one another, and their start.

use stack::Exit;

use crate::support::{Client, PATIENCE, World, clients, until};

#[tokio::test]
async fn a_replica_with_another_mode_or_writer_refuses_to_start() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |_| {}).await;
    let first = fleet.replicas()[0].name();
    for env in [
        vec![("ORDER_LOCK_MODE", "none")],
        vec![("ORDER_LOCK_MODE", "zk-simple")],
        vec![("ORDER_LOCK_MODE", "zk-fair"), ("ORDER_WRITER", "plain")],
    ] {
        let (child, _) = world.process("other", &env).await;
        assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(2)), "{env:?}: {}", child.log_tail(20));
        let log = child.log_tail(5);
        assert!(log.contains("refused to start") && log.contains(first), "{env:?}: {log}");
    }
    let (same, url) = world.process("same", &[("ORDER_LOCK_MODE", "zk-fair")]).await;
    let client = Client::new(&url);
    until("one with the same mode is ready", || client.is_ready()).await;
    assert!(same.stop(PATIENCE).await.success());
    assert!(clients(&fleet)[0].is_ready().await, "the first one works on");
    // Once the first is gone another mode may start.
    fleet.stop(PATIENCE).await;
    let (child, url) = world.process("other", &[("ORDER_LOCK_MODE", "none")]).await;
    let client = Client::new(&url);
    until("another mode is ready", || client.is_ready()).await;
    assert!(child.stop(PATIENCE).await.success());
}

#[tokio::test]
async fn replicas_that_start_at_once_migrate_once() {
    let world = World::new().await;
    let fleet = world.fleet("zk-fair", |config| config.replicas = 5).await;
    let files =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations")).expect("a folder");
    let files = files.flatten().filter(|file| file.path().extension().is_some_and(|ext| ext == "sql"));
    let applied = world.scalar("SELECT count(*) FROM _sqlx_migrations WHERE success").await;
    assert_eq!(usize::try_from(applied), Ok(files.count()));
    for client in clients(&fleet) {
        assert!(client.is_ready().await);
    }
}

#[tokio::test]
async fn a_schema_of_another_program_is_not_touched() {
    let world = World::new().await;
    world.fleet("zk-fair", |_| {}).await.stop(PATIENCE).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = 'x' WHERE version = 1")
        .execute(&world.pool)
        .await
        .unwrap();
    let (child, _) = world.process("late", &[]).await;
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(70)), "{}", child.log_tail(20));
    assert!(child.log_tail(3).contains("migration 1"), "{}", child.log_tail(3));
}

#[tokio::test]
async fn a_bad_configuration_is_refused_with_every_problem() {
    let world = World::new().await;
    let secret = "postgres://u:sesame@[";
    let env = [
        ("ORDER_LOCK_MODE", "none"),
        ("ORDER_WRITER", "fenced"),
        ("ORDER_WAIT_MS", "1"),
        ("DATABASE_URL", secret),
    ];
    let (child, _) = world.process("bad", &env).await;
    assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(2)));
    let log = child.log_tail(20);
    for name in ["ORDER_WRITER", "ORDER_WAIT_MS", "DATABASE_URL"] {
        assert!(log.contains(name), "{name}: {log}");
    }
    assert!(!log.contains("sesame"), "{log}");
}

#[tokio::test]
async fn a_wrong_password_is_not_shown() {
    let mut world = World::new().await;
    let right = world.database_url.split("postgres://").nth(1).and_then(|rest| rest.split('@').next());
    let user = right.and_then(|right| right.split(':').next()).expect("a user").to_owned();
    let host = world.database_url.split('@').nth(1).expect("a host").to_owned();
    world.database_url = format!("postgres://{user}:not-the-sesame@{host}");
    let (child, url) = world.process("bad", &[]).await;
    let client = Client::new(&url);
    until("it says why it is not ready", || async {
        matches!(client.try_send("GET", "/readyz", None, &[]).await,
                 Ok(reply) if reply.text.contains("password authentication failed"))
    })
    .await;
    assert_eq!(client.get("/healthz").await.status, 200);
    assert!(child.stop(PATIENCE).await.success());
    assert!(!child.log_tail(200).contains("not-the-sesame"));
}
