//! The audit's own reading of PostgreSQL and ZooKeeper, on real ones with the real schema.

use std::time::Duration;

use lab::{
    audit::{AuditInputs, AuditReport, Invariant, Locks, Watches, audit, facts::Guarded},
    verdict::Verdict,
};
use sqlx::{PgPool, migrate::Migrator};
use stack::{Postgres, RunDir, ZooKeeper, ZooKeeperConfig};
use tokio::time::Instant;
use zk_locks::{Acquire, Inspector, Recipe, Session, SessionConfig};

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

async fn database(dir: &RunDir) -> (Postgres, PgPool) {
    let postgres = Postgres::start(dir).await.expect("PostgreSQL");
    let url = postgres.create_database("audited").await.expect("a database");
    let pool = PgPool::connect(&url).await.expect("connects");
    MIGRATIONS.run(&pool).await.expect("migrates");
    (postgres, pool)
}

/// Ten units, of which one order took two.
const BOOKS: &str = "
    insert into stock (sku, on_hand, fence) values ('sku-1', 8, 6);
    insert into orders (id, status, instance, trace_id)
        values ('00000000-0000-4000-8000-000000000001', 'accepted', 'a', 't');
    insert into order_lines values ('00000000-0000-4000-8000-000000000001', 'sku-1', 2, 8);
    insert into ledger (change_id, sku, kind, order_id, delta, on_hand_after, token, instance, lock_node) values
        (gen_random_uuid(), 'sku-1', 'set', null, 10, 10, 5, 'a', '/locks/stock:sku-1/lock'),
        (gen_random_uuid(), 'sku-1', 'order', '00000000-0000-4000-8000-000000000001', -2, 8, 6, 'a',
         '/locks/stock:sku-1/lock');
    insert into idempotency (key, request_hash, status, body, order_id)
        values ('k', '', 201, '{}', '00000000-0000-4000-8000-000000000001');";

fn of_database(pool: &PgPool) -> AuditInputs<'_> {
    AuditInputs {
        guarded: Guarded::ByFence,
        quiet_within: Duration::from_millis(300),
        ..AuditInputs::of_database(pool)
    }
}

async fn audited(pool: &PgPool) -> AuditReport {
    audit(of_database(pool)).await.expect("an audit")
}

#[tokio::test]
async fn the_database_is_read_as_it_is() {
    let dir = RunDir::disposable("audit-database").expect("a folder");
    let (_postgres, pool) = database(&dir).await;
    assert_eq!(audited(&pool).await.verdict, Verdict::Unknown, "nothing was ordered");
    sqlx::raw_sql(BOOKS).execute(&pool).await.expect("books");
    let report = audited(&pool).await;
    assert_eq!((report.verdict, report.judged.accepted), (Verdict::Valid, 1), "{report:?}");
    assert_eq!(report.judged.ledger_rows, 2);
    assert_eq!(report.judged.not_judged, [Invariant::I4]);

    sqlx::raw_sql("update stock set fence = 5").execute(&pool).await.expect("spoilt");
    let report = audited(&pool).await;
    assert_eq!((report.verdict, report.token_regressions), (Verdict::Invalid, 1), "{report:?}");

    sqlx::raw_sql("update stock set on_hand = 11, fence = 6").execute(&pool).await.expect("spoilt");
    let report = audited(&pool).await;
    assert_eq!((report.verdict, report.oversold), (Verdict::Invalid, 3), "{report:?}");

    // A SKU begins with none: neither its first row nor all of them can go unnoticed.
    sqlx::raw_sql("update stock set on_hand = 8; delete from ledger where kind = 'set'")
        .execute(&pool)
        .await
        .expect("spoilt");
    let report = audited(&pool).await;
    assert_eq!((report.verdict, report.lost_updates), (Verdict::Invalid, 1), "{report:?}");
    sqlx::raw_sql("insert into stock (sku, on_hand) values ('sku-2', 3)")
        .execute(&pool)
        .await
        .expect("spoilt");
    let report = audited(&pool).await;
    assert_eq!((report.verdict, report.lost_updates), (Verdict::Invalid, 2), "{report:?}");
}

#[tokio::test]
async fn sessions_that_leave_something_open_are_found_and_the_audits_own_are_not() {
    let dir = RunDir::disposable("audit-sessions").expect("a folder");
    let (_postgres, pool) = database(&dir).await;
    sqlx::raw_sql(BOOKS).execute(&pool).await.expect("books");

    let open = pool.begin().await.expect("a transaction");
    let report = audited(&pool).await;
    assert_eq!((report.open_transactions, report.verdict), (1, Verdict::Invalid), "{report:?}");
    open.rollback().await.expect("rolled back");

    let mut connection = pool.acquire().await.expect("a connection");
    sqlx::query("select pg_advisory_lock(7)").execute(&mut *connection).await.expect("a lock");
    let report = audited(&pool).await;
    assert_eq!((report.advisory_locks, report.verdict), (1, Verdict::Invalid), "{report:?}");
    sqlx::query("select pg_advisory_unlock(7)").execute(&mut *connection).await.expect("no lock");
    assert_eq!(audited(&pool).await.verdict, Verdict::Valid);

    // A transaction that ends within the wait is no fault.
    let open = pool.begin().await.expect("a transaction");
    let patient = AuditInputs { quiet_within: Duration::from_secs(20), ..of_database(&pool) };
    let end = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        open.rollback().await.expect("rolled back");
    };
    let (report, ()) = tokio::join!(audit(patient), end);
    assert_eq!(report.expect("an audit").verdict, Verdict::Valid);
}

#[tokio::test]
async fn locks_and_watches_that_are_left_are_found() {
    let dir = RunDir::disposable("audit-locks").expect("a folder");
    let config = ZooKeeperConfig { servers: 1, ..ZooKeeperConfig::default() };
    let (books, zookeeper) = tokio::join!(database(&dir), ZooKeeper::start(&dir, config));
    let ((_postgres, pool), zookeeper) = (books, zookeeper.expect("ZooKeeper"));
    sqlx::raw_sql(BOOKS).execute(&pool).await.expect("books");
    let connect = zookeeper.connect_string("/audited");
    let session = Session::start(SessionConfig::new(&connect).expect("an address").with_instance("left"));
    session.connected(Instant::now() + Duration::from_secs(20)).await.expect("connects");
    let inspector = Inspector::connect(&connect).await.expect("connects");
    let baseline = zookeeper.watch_count().await.expect("a count");
    let look = |quiet_within| {
        let watches = Watches {
            baseline,
            now: Box::new(|| Box::pin(async { zookeeper.watch_count().await.map_err(Into::into) })),
        };
        let locks = Locks { inspector: &inspector, root: "/locks", watches: Some(watches) };
        audit(AuditInputs { locks: Some(locks), quiet_within, ..of_database(&pool) })
    };
    let patient = Duration::from_secs(20);

    let report = look(patient).await.expect("an audit");
    assert_eq!(report.verdict, Verdict::Valid, "no lock was ever taken: {report:?}");
    assert!(report.judged.not_judged.is_empty());

    let mutex = session.mutex(Recipe::Fair, "/locks/stock:sku-1").expect("a path");
    let guard = mutex.acquire(Acquire::within(Duration::from_secs(10))).await.expect("acquires");
    let report = look(Duration::from_millis(300)).await.expect("an audit");
    assert_eq!((report.leftover_nodes, report.verdict), (1, Verdict::Invalid), "{report:?}");
    assert!(report.leftover_watches > 0, "a holder watches its own node: {report:?}");

    guard.release().await.expect("releases");

    // Locks that come and go while the audit waits are traffic: neither a fault nor a clean bill.
    let mut traffic = tokio::spawn({
        let mutex = session.mutex(Recipe::Simple, "/locks/stock:sku-2").expect("a path");
        async move {
            loop {
                let guard = mutex.acquire(Acquire::within(Duration::from_secs(10))).await.expect("acquires");
                tokio::time::sleep(Duration::from_millis(150)).await;
                guard.release().await.expect("releases");
            }
        }
    });
    let mut unknown = None;
    while unknown.is_none() {
        let report = tokio::select! {
            report = look(Duration::from_secs(2)) => report.expect("an audit"),
            ended = &mut traffic => panic!("{ended:?}"),
        };
        assert_ne!(report.verdict, Verdict::Invalid, "{report:?}");
        // A look may fall between two locks; then it was quiet.
        unknown = (report.verdict == Verdict::Unknown).then_some(report);
    }
    let report = unknown.expect("seen");
    assert!(report.judged.traffic && report.judged.not_judged == [Invariant::I4], "{report:?}");
    traffic.abort();
    let _aborted = traffic.await;

    let report = look(patient).await.expect("an audit");
    assert_eq!(report.verdict, Verdict::Valid, "{report:?}");
    inspector.close().await;
    session.close(Duration::from_secs(5)).await.expect("closes");
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_an_error_and_no_verdict() {
    let dir = RunDir::disposable("audit-errors").expect("a folder");
    let (_postgres, pool) = database(&dir).await;
    let history = dir.sub("no-such-history.jsonl");
    let inputs = AuditInputs { history: Some(&history), ..of_database(&pool) };
    let error = audit(inputs).await.expect_err("no history");
    assert!(error.to_string().contains("no-such-history.jsonl"), "{error}");
    sqlx::raw_sql("drop table ledger cascade").execute(&pool).await.expect("dropped");
    let error = audit(of_database(&pool)).await.expect_err("no ledger");
    assert!(error.to_string().contains("ledger"), "{error}");
}
