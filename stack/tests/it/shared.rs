//! The servers that the tests of a binary share are nobody's in particular.

use std::thread;

use sqlx::{Connection as _, PgConnection};

/// Uses the shared servers from a runtime that then goes away.
fn from_a_runtime_of_its_own() -> (u32, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let shared = stack::testing::shared().await;
        let url = shared.fresh_database().await;
        let mut connection = PgConnection::connect(&url).await.expect("it answers");
        connection.ping().await.expect("it answers");
        assert!(shared.zookeeper().leader().await.is_some());
        (shared.postgres().child().pid(), shared.fresh_chroot())
    })
}

#[test]
fn many_runtimes_share_one_set_of_servers() {
    let first = thread::spawn(from_a_runtime_of_its_own).join().expect("no panic");
    let both = [0, 1].map(|_| thread::spawn(from_a_runtime_of_its_own));
    for other in both.map(|thread| thread.join().expect("no panic")) {
        assert_eq!(first.0, other.0, "the same server");
        assert_ne!(first.1, other.1, "another chroot");
    }
}
