//! Start and stop of the whole service.
//!
//! `build` binds and starts the background work, `run_until_stopped` serves until SIGTERM or SIGINT and then drains:
//! not ready at once, no new work, what is in flight finishes, locks are released, the session is closed. Promises
//! an end within the grace period plus a few seconds, whatever is down. Telemetry is the caller's to flush.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use actix_web::{App, HttpServer, dev::ServerHandle};
use opentelemetry::metrics::Meter;
use prometheus::Registry;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{Semaphore, watch},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use zk_locks::{Session, SessionConfig};

use crate::{
    config::Config,
    health::Health,
    http::{self, Admission, BODY_BYTES_MAX, Faults, Shared},
    lockers::Locker,
    place::{Service, Work},
    replicas::{self, Identity, Refused, Registration, Registrations},
    store::{MigrationError, Store},
    tasks::Tasks,
    telemetry::{LockObserver, Metrics, Sources},
};

/// How long the session may take to close, and the pool after it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long replies may take to leave once everything is answered. Idle connections need not be waited for.
const REPLIES_WAIT: Duration = Duration::from_millis(500);

/// The service could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The address cannot be listened at.
    #[error("cannot listen at {addr}")]
    Bind {
        /// Which address.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// ZooKeeper's connect string is malformed.
    #[error("the connect string is malformed")]
    Zookeeper(#[from] zk_locks::ConfigError),
    /// Another replica runs another way.
    #[error("refused to start: {0}")]
    Refused(Refused),
    /// The database was made for another program.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The web server or the signal handlers broke.
    #[error("the server stopped")]
    Server(#[from] io::Error),
}

/// A service that listens and has begun its background work.
pub struct Application {
    addr: SocketAddr,
    server: actix_web::dev::Server,
    handle: ServerHandle,
    signals: (Signal, Signal),
    grace: Duration,
    service: Arc<Service>,
    admission: Arc<Admission>,
    session: Session,
    end_now: watch::Sender<bool>,
    schema: JoinHandle<Result<(), MigrationError>>,
}

impl Application {
    /// Binds, and starts to connect to everything in the background.
    ///
    /// # Errors
    /// [`AppError`] if it cannot listen. Servers that are down are no error: the service is not ready until they are up.
    ///
    /// # Panics
    /// Outside a multi-threaded Tokio runtime that outlives the service.
    pub fn build(config: Config, meter: &Meter, registry: Registry) -> Result<Self, AppError> {
        let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let addr = config.http_addr;
        let bind = |source| AppError::Bind { addr, source };
        let listener = std::net::TcpListener::bind(addr).map_err(bind)?;
        let addr = listener.local_addr().map_err(bind)?;
        let metrics = Arc::new(Metrics::new(meter));
        let store = Store::new(&config);
        let identity = Identity {
            instance: config.instance.clone(),
            mode: config.mode,
            writer: config.writer,
            url: format!("http://{addr}"),
        };
        let session = Session::start(
            SessionConfig::new(&config.zookeeper_connect)?
                .with_session_timeout(config.session_timeout)
                .with_instance(&config.instance)
                .with_metadata(identity.metadata())
                .with_observer(Arc::new(LockObserver::new(Arc::clone(&metrics)))),
        );
        let transaction_max = config.db_lock_timeout.max(config.db_idle_in_transaction);
        let registrations = register(&session, identity, transaction_max);
        let (end_now, given_up) = watch::channel(false);
        let admission = Arc::new(Admission::new(config.requests_max));
        metrics.observe(meter, sources(&config, &store, &admission));
        let service = Arc::new(Service {
            instance: config.instance,
            mode: config.mode,
            writer: config.writer,
            lock_wait: config.lock_wait,
            locker: Locker::new(config.mode, session.clone()),
            health: Health::new(session.clone(), registrations.clone()),
            store,
            metrics,
            registrations,
            tasks: Tasks::here(),
            places: Arc::new(Semaphore::new(config.requests_max)),
            given_up,
            work: Work::new(config.work),
        });
        let schema = start_database(&service);
        let faults = config.faults_token.map(|token| Faults { token, session: session.clone() });
        let shared = Arc::new(Shared {
            service: Arc::clone(&service),
            admission: Arc::clone(&admission),
            registry,
            faults,
        });
        let server = HttpServer::new(move || App::new().configure(http::configure(Arc::clone(&shared))))
            .disable_signals()
            .shutdown_timeout(config.shutdown_grace.as_secs() + 1)
            .listen(listener)
            .map_err(bind)?
            .run();
        let (handle, grace) = (server.handle(), config.shutdown_grace);
        Ok(Self { addr, server, handle, signals, grace, service, admission, session, end_now, schema })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The port it listens at.
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Serves until it is told to stop, or must.
    ///
    /// # Errors
    /// [`AppError::Refused`] if an older replica runs another way, [`AppError::Migration`] if the schema is not ours.
    pub async fn run_until_stopped(self) -> Result<(), AppError> {
        let Self { server, handle, grace, service, admission, session, end_now, mut schema, .. } = self;
        let (mut terminate, mut interrupt) = self.signals;
        let mut registrations = service.registrations.clone();
        let mut server = tokio::spawn(server);
        tracing::info!(
            addr = %self.addr,
            mode = service.mode.name,
            writer = service.writer.as_str(),
            "listening"
        );
        let mut migrated = false;
        let ended = loop {
            tokio::select! {
                _ = terminate.recv() => break Ok(()),
                _ = interrupt.recv() => break Ok(()),
                refused = refusal(&mut registrations) => break Err(AppError::Refused(refused)),
                result = &mut schema, if !migrated => match result {
                    Ok(Ok(())) => migrated = true,
                    Ok(Err(error)) => break Err(error.into()),
                    Err(panic) => break Err(io::Error::other(panic).into()),
                },
                result = &mut server => break match result {
                    Ok(Ok(())) => Err(io::Error::other("the web server ended by itself").into()),
                    Ok(Err(error)) => Err(error.into()),
                    Err(panic) => Err(io::Error::other(panic).into()),
                },
            }
        };
        let drain = Drain { handle, grace, service, admission, session, end_now };
        drain.run().await;
        ended
    }
}

/// Looks after the registration in the background.
fn register(session: &Session, identity: Identity, transaction_max: Duration) -> Registrations {
    let (registration, registrations) = watch::channel(Registration::Pending);
    let session = session.clone();
    drop(tokio::spawn(
        async move { replicas::watch(&session, &identity, transaction_max, &registration).await },
    ));
    registrations
}

/// Resolves when the registration is refused, and not otherwise.
async fn refusal(registrations: &mut Registrations) -> Refused {
    let refused =
        registrations.wait_for(|registration| matches!(registration, Registration::Refused(_))).await;
    match refused.as_deref() {
        Ok(Registration::Refused(refused)) => refused.clone(),
        _ => std::future::pending().await,
    }
}

/// Migrates, then keeps an eye on the database.
fn start_database(service: &Arc<Service>) -> JoinHandle<Result<(), MigrationError>> {
    let watching = Arc::clone(service);
    drop(tokio::spawn(async move { watching.health.watch_database(&watching.store).await }));
    let service = Arc::clone(service);
    tokio::spawn(async move {
        service.store.migrate().await?;
        service.health.migrated();
        Ok(())
    })
}

fn sources(config: &Config, store: &Store, admission: &Arc<Admission>) -> Sources {
    let (store, admission) = (store.clone(), Arc::clone(admission));
    Sources {
        in_flight: Box::new(move || admission.in_flight() as u64),
        connections: Box::new(move || {
            let (open, idle) = store.connections();
            (u64::from(open), idle as u64)
        }),
        requests_max: config.requests_max as u64,
        db_connections_max: u64::from(config.db_connections_max),
        lock_wait: config.lock_wait,
        body_bytes_max: BODY_BYTES_MAX as u64,
    }
}

struct Drain {
    handle: ServerHandle,
    grace: Duration,
    service: Arc<Service>,
    admission: Arc<Admission>,
    session: Session,
    end_now: watch::Sender<bool>,
}

impl Drain {
    async fn run(self) {
        let until = Instant::now() + self.grace;
        let service = &self.service;
        service.health.drain();
        tracing::info!(in_flight = self.admission.in_flight(), "shutting down");
        // Whoever comes meanwhile is told so, which is clearer than a refused connection.
        if !self.admission.empty(until).await {
            // Whoever still waits is told so, and whoever has not committed rolls back.
            tracing::warn!(in_flight = self.admission.in_flight(), "the grace period is over");
            self.end_now.send_replace(true);
            self.admission.empty(Instant::now() + REPLIES_WAIT).await;
        }
        if timeout(REPLIES_WAIT, self.handle.stop(true)).await.is_err() {
            tracing::debug!("idle connections are cut");
        }
        if !service.tasks.idle(until.max(Instant::now() + REPLIES_WAIT)).await {
            tracing::warn!("work is left behind; the database rolls back and the locks go with the session");
        }
        if let Err(error) = self.session.close(CLOSE_WAIT).await {
            tracing::warn!(%error, "locks that are left go when the session times out");
        }
        timeout_at(Instant::now() + CLOSE_WAIT, service.store.close()).await.ok();
        tracing::info!("stopped");
    }
}
