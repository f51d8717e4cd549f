//! A database and a chroot of one's own, replicas on them, and a client.

use std::{future::Future, time::Duration};

use serde_json::{Value, json};
use sqlx::{PgPool, postgres::PgPoolOptions};
use stack::{Child, Command, Fleet, FleetConfig, testing};
use uuid::Uuid;

/// For waits that end when something is so: for a broken build, not for a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// What a test's fault endpoints ask for.
pub(crate) const FAULTS_TOKEN: &str = "open-sesame";
/// The session timeout of the tests' replicas.
pub(crate) const SESSION: Duration = Duration::from_secs(3);

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "never happened: {what}");
}

/// What the replicas of a test share.
pub(crate) struct World {
    pub(crate) name: String,
    pub(crate) database_url: String,
    pub(crate) zookeeper: String,
    pub(crate) pool: PgPool,
}

impl World {
    /// On the servers that all tests share: never stop those.
    pub(crate) async fn new() -> Self {
        let shared = testing::shared().await;
        Self::on(shared.fresh_database().await, shared.fresh_chroot())
    }

    pub(crate) fn on(database_url: String, zookeeper: String) -> Self {
        let pool = PgPoolOptions::new().max_connections(4).connect_lazy(&database_url).expect("a URL");
        let name = Uuid::new_v4().simple().to_string()[..8].to_owned();
        Self { name, database_url, zookeeper, pool }
    }

    /// What replicas run with unless a test says otherwise.
    pub(crate) fn config(&self, mode: &str, writer: &str) -> FleetConfig {
        let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        FleetConfig {
            name: self.name.clone(),
            replicas: 1,
            mode: mode.into(),
            writer: writer.into(),
            database_url: self.database_url.clone(),
            zookeeper_connect: self.zookeeper.clone(),
            session_timeout: SESSION,
            lock_wait: Duration::from_secs(10),
            work: Duration::ZERO,
            faults_token: Some(FAULTS_TOKEN.into()),
            extra_env: vec![
                env("ORDER_DB_LOCK_TIMEOUT_MS", "1500"),
                env("ORDER_DB_IDLE_IN_TRANSACTION_MS", "1500"),
            ],
        }
    }

    /// Replicas that are ready.
    pub(crate) async fn fleet(&self, mode: &str, change: impl FnOnce(&mut FleetConfig)) -> Fleet {
        let writer = if mode == "none" { "plain" } else { "fenced" };
        let mut config = self.config(mode, writer);
        change(&mut config);
        let dir = testing::shared().await.dir();
        Fleet::start(dir, config).await.unwrap_or_else(|error| panic!("no fleet: {error:?}"))
    }

    /// A process that nobody waits for to be ready. Returns its URL too.
    pub(crate) async fn process(&self, suffix: &str, env: &[(&str, &str)]) -> (Child, String) {
        let dir = testing::shared().await.dir();
        let name = format!("{}-{suffix}", self.name);
        let addr = format!("127.0.0.1:{}", stack::ports::free(1).expect("a port")[0]);
        let program = stack::programs::order_service().expect("the service is built");
        let mut command = Command::new(&name, program)
            .env_remove_prefix("ORDER_")
            .env_remove_prefix("OTEL_")
            .env("DATABASE_URL", &self.database_url)
            .env("ZOOKEEPER_CONNECT", &self.zookeeper)
            .env("ZOOKEEPER_SESSION_TIMEOUT_MS", SESSION.as_millis().to_string())
            .env("ORDER_DB_LOCK_TIMEOUT_MS", "1500")
            .env("ORDER_DB_IDLE_IN_TRANSACTION_MS", "1500")
            .env("ORDER_FAULTS_TOKEN", FAULTS_TOKEN)
            .env("ORDER_INSTANCE", &name)
            .env("ORDER_HTTP_ADDR", &addr)
            .may_end();
        for (key, value) in env {
            command = command.env(key, value);
        }
        (command.spawn(dir).expect("it starts"), format!("http://{addr}"))
    }

    pub(crate) async fn scalar(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.pool).await.unwrap_or_else(|e| panic!("{query}: {e}"))
    }

    /// The three views of the audit: no lost update, no order without its ledger rows, no token that went down.
    pub(crate) async fn assert_sound(&self) {
        for (what, query) in [
            ("differences", "SELECT count(*) FROM audit_stock_balance WHERE difference <> 0"),
            ("orders apart from the ledger", "SELECT count(*) FROM audit_order_ledger"),
            ("token regressions", "SELECT count(*) FROM audit_token_regressions"),
        ] {
            assert_eq!(self.scalar(query).await, 0, "{what}");
        }
    }
}

/// A reply, read whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) text: String,
    pub(crate) json: Value,
    pub(crate) headers: Vec<(String, String)>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or_default()
    }
}

/// A client of one replica.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    url: String,
    http: reqwest::Client,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        Self { url: url.to_owned(), http }
    }

    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Result<Reply, reqwest::Error> {
        let method = method.parse().expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(n, v)| (n.to_string(), v.to_str().unwrap_or_default().to_owned())).collect();
        let text = response.text().await?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { status, text, json, headers })
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let sent = self.try_send(method, path, body.map(|body| body.to_string()), headers).await;
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None, &[]).await
    }

    pub(crate) async fn set(&self, sku: &str, on_hand: i64) {
        let reply = self.send("PUT", &format!("/stock/{sku}"), Some(json!({"on_hand": on_hand})), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    pub(crate) async fn on_hand(&self, sku: &str) -> i64 {
        let reply = self.get(&format!("/stock/{sku}")).await;
        reply.json["on_hand"].as_i64().unwrap_or_else(|| panic!("{reply:?}"))
    }

    pub(crate) async fn order(&self, lines: &[(&str, i64)], key: Option<&str>) -> Reply {
        let key: Vec<_> = key.iter().map(|key| ("Idempotency-Key", *key)).collect();
        self.send("POST", "/orders", Some(order_body(lines)), &key).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        self.send("POST", &format!("/orders/{id}/cancel"), None, &[]).await
    }

    pub(crate) async fn set_work(&self, work_ms: u64) {
        let body = Some(json!({"work_ms": work_ms}));
        let reply = self.send("PUT", "/faults/work", body, &[("X-Fault-Token", FAULTS_TOKEN)]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    /// Ends the replica's ZooKeeper session.
    pub(crate) async fn expire_session(&self) -> Reply {
        let reply =
            self.send("POST", "/faults/session/expire", None, &[("X-Fault-Token", FAULTS_TOKEN)]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply
    }

    /// Waits until the replica holds no lock of the fair recipe: answers leave before the release.
    pub(crate) async fn until_released(&self) {
        until("all locks are released", || async {
            self.get("/metrics").await.text.contains("lock_held{recipe=\"fair\"} 0")
        })
        .await;
    }

    pub(crate) async fn is_ready(&self) -> bool {
        matches!(self.try_send("GET", "/readyz", None, &[]).await, Ok(reply) if reply.status == 200)
    }
}

pub(crate) fn order_body(lines: &[(&str, i64)]) -> Value {
    let lines = lines.iter().map(|(sku, quantity)| json!({"sku": sku, "quantity": quantity}));
    json!({"lines": lines.collect::<Vec<_>>()})
}

pub(crate) fn clients(fleet: &Fleet) -> Vec<Client> {
    fleet.replicas().iter().map(|replica| Client::new(replica.url())).collect()
}

/// Waits until a request of ours is in the slow part of an order, seen from outside: the lock is held.
pub(crate) async fn until_held(zookeeper: &str, sku: &str) -> String {
    let inspector = zk_locks::Inspector::connect(zookeeper).await.expect("zookeeper");
    let path = format!("/locks/stock:{sku}");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let holder = loop {
        if let Ok(view) = inspector.lock(&path).await
            && let Some(first) = view.entries.first()
        {
            break first.instance.clone().unwrap_or_default();
        }
        assert!(tokio::time::Instant::now() < deadline, "nobody holds {path}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    inspector.close().await;
    holder
}
