//! A shop of several replicas with one stock in memory, over real HTTP/1.1, that misbehaves as told.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What happens to an order request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Applied, then the connection is cut instead of a reply.
    LoseReply,
    /// Not applied, the connection is cut.
    LoseRequest,
    /// 503 with "not-placed".
    Refuse,
    /// Applied, but the reply is 503 with "unknown".
    SayUnknown,
    /// Not applied, never answered.
    Hang,
}

pub(crate) type Faults = fn(replica: usize, request: u64) -> Fault;

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) stock: BTreeMap<String, i64>,
    pub(crate) decided: HashMap<String, (u16, Value)>,
    pub(crate) placed: Vec<(String, Vec<(String, i64)>)>,
    pub(crate) cancelled: Vec<String>,
    /// Whole requests received, by method and first part of the path.
    pub(crate) requests: BTreeMap<String, u64>,
    pub(crate) traceparents: Vec<String>,
    orders_seen: u64,
}

impl Books {
    pub(crate) fn requests(&self) -> u64 {
        self.requests.values().sum()
    }
}

pub(crate) struct Shop {
    books: Arc<Mutex<Books>>,
    pub(crate) hosts: Vec<String>,
    _servers: JoinSet<()>,
}

impl Shop {
    pub(crate) async fn open(replicas: usize, faults: Faults) -> Self {
        let books = Arc::new(Mutex::new(Books::default()));
        let (mut hosts, mut servers) = (Vec::new(), JoinSet::new());
        for replica in 0..replicas {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            hosts.push(format!("http://{}", listener.local_addr().expect("an address")));
            let books = Arc::clone(&books);
            servers.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, replica, Arc::clone(&books), faults));
                }
            });
        }
        Self { books, hosts, _servers: servers }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic in the shop")
    }
}

struct Request {
    method: String,
    path: String,
    key: String,
    traceparent: String,
    body: Value,
}

async fn serve(stream: TcpStream, replica: usize, books: Arc<Mutex<Books>>, faults: Faults) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let (fault, reply) = decide(&mut books.lock().expect("no panic"), &request, replica, faults);
        match fault {
            Fault::LoseReply | Fault::LoseRequest => return,
            Fault::Hang => return std::future::pending().await,
            Fault::None | Fault::Refuse | Fault::SayUnknown => {}
        }
        let (status, body) = reply;
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body =
        vec![0; headers.get("content-length").map_or(0, |length| length.parse().expect("a length"))];
    stream.read_exact(&mut body).await.ok()?;
    let header = |name| headers.get(name).cloned().unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { method, path, key: header("idempotency-key"), traceparent: header("traceparent"), body })
}

fn decide(books: &mut Books, request: &Request, replica: usize, faults: Faults) -> (Fault, (u16, Value)) {
    let parts: Vec<_> = request.path.trim_start_matches('/').split('/').collect();
    *books.requests.entry(format!("{} {}", request.method, parts[0])).or_default() += 1;
    books.traceparents.push(request.traceparent.clone());
    match (request.method.as_str(), parts.as_slice()) {
        ("PUT", ["stock", sku]) => {
            books.stock.insert((*sku).to_owned(), request.body["on_hand"].as_i64().expect("a number"));
            (Fault::None, (200, json!({ "sku": sku })))
        }
        ("POST", ["stock", sku, "restock"]) => {
            let quantity = request.body["quantity"].as_i64().expect("a number");
            *books.stock.entry((*sku).to_owned()).or_default() += quantity;
            (Fault::None, (200, json!({ "sku": sku })))
        }
        ("POST", ["orders"]) => order(books, request, replica, faults),
        ("POST", ["orders", id, "cancel"]) => (Fault::None, cancel(books, id)),
        ("GET", _) => (Fault::None, (200, json!({}))),
        _ => (Fault::None, (404, json!({ "code": "not-found" }))),
    }
}

fn order(books: &mut Books, request: &Request, replica: usize, faults: Faults) -> (Fault, (u16, Value)) {
    books.orders_seen += 1;
    let fault = faults(replica, books.orders_seen);
    let reply = match fault {
        Fault::LoseRequest | Fault::Hang => (0, Value::Null),
        Fault::Refuse => (503, json!({ "code": "lock-timeout", "order": "not-placed" })),
        Fault::SayUnknown => {
            place(books, request);
            (503, json!({ "code": "unavailable", "order": "unknown" }))
        }
        Fault::None | Fault::LoseReply => place(books, request),
    };
    (fault, reply)
}

fn place(books: &mut Books, request: &Request) -> (u16, Value) {
    if let Some(reply) = books.decided.get(&request.key) {
        return reply.clone();
    }
    let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
    for line in request.body["lines"].as_array().expect("lines") {
        let sku = line["sku"].as_str().expect("a SKU").to_owned();
        *wanted.entry(sku).or_default() += line["quantity"].as_i64().expect("a number");
    }
    let short =
        wanted.iter().find(|(sku, quantity)| books.stock.get(*sku).is_none_or(|there| there < quantity));
    let reply = if let Some((sku, requested)) = short {
        let available = books.stock.get(sku).copied().unwrap_or_default();
        let problem = json!({
            "code": "out-of-stock", "order": "not-placed", "sku": sku, "requested": requested, "available": available,
        });
        (409, problem)
    } else {
        for (sku, quantity) in &wanted {
            *books.stock.entry(sku.clone()).or_default() -= quantity;
        }
        books.placed.push((request.key.clone(), wanted.into_iter().collect()));
        let id = format!("order-{}", books.placed.len());
        (
            201,
            json!({ "id": id, "instance": "shop", "lock": { "token": books.placed.len(), "wait_ms": 1.0 } }),
        )
    };
    books.decided.insert(request.key.clone(), reply.clone());
    reply
}

fn cancel(books: &mut Books, id: &str) -> (u16, Value) {
    if !books.cancelled.iter().any(|cancelled| cancelled == id) {
        let number: usize = id.trim_start_matches("order-").parse().expect("a number");
        for (sku, quantity) in books.placed[number - 1].1.clone() {
            *books.stock.entry(sku).or_default() += quantity;
        }
        books.cancelled.push(id.to_owned());
    }
    (200, json!({ "id": id, "status": "cancelled" }))
}
