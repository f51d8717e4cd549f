//! Contends for one lock from several tasks and says what happened:
//! `cargo run -p zk-locks --example contend -- 127.0.0.1:2181/example fair 16 200`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zk_locks::{Acquire, Recipe, Session, SessionConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let connect = arguments.next().unwrap_or_else(|| "127.0.0.1:2181/example".to_owned());
    let recipe: Recipe = arguments.next().as_deref().unwrap_or("fair").parse()?;
    let tasks: usize = arguments.next().as_deref().unwrap_or("16").parse()?;
    let rounds: usize = arguments.next().as_deref().unwrap_or("100").parse()?;

    let session = Session::start(SessionConfig::new(&connect)?.with_instance("contend"));
    let lock = session.mutex(recipe, "/locks/contended")?;
    let (inside, last_token) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicI64::new(0)));
    let started = Instant::now();
    let mut contenders = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let (lock, inside, last_token) = (lock.clone(), Arc::clone(&inside), Arc::clone(&last_token));
        contenders.spawn(async move {
            for _ in 0..rounds {
                let guard = lock.acquire(Acquire::within(Duration::from_mins(1))).await?;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
                assert!(last_token.swap(guard.token(), Ordering::SeqCst) < guard.token(), "the token fell");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        });
    }
    while let Some(contender) = contenders.join_next().await {
        contender?.map_err(|error| error.to_string())?;
    }
    let turns = tasks * rounds;
    println!("{turns} turns, {:.0} a second", turns as f64 / started.elapsed().as_secs_f64());
    session.close(Duration::from_secs(5)).await?;
    Ok(())
}
