//! A sound service in memory: it keeps the books of a random traffic as the real one would, and the client's
//! history with lost replies, retries, refusals of the moment and overlapping requests.

use std::collections::BTreeMap;

use lab::audit::facts::{
    Facts, Guarded, KeyRow, Kind, LedgerRow, LeftLocks, LeftSessions, OrderRow, StockRow,
};
use loadtest::history::{Line, Op, Placed, Record};
use proptest::prelude::*;

/// What becomes of a request's reply, and how long it is under way before and after its moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) kind: Reply,
    pub(crate) before_ms: f64,
    pub(crate) after_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Arrives,
    /// The first reply is lost; a retry gets the kept one.
    LostOnce,
    /// No reply ever arrives.
    LostForGood,
    /// First a 503 that places nothing.
    RefusedFirst,
    /// Two copies at once.
    Twice,
    /// Placed by somebody whose history we do not have.
    Foreign,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Order(Vec<(usize, i64)>, Weather),
    /// Nothing is placed and the client is told so, every time.
    Overload(Vec<(usize, i64)>, Weather),
    Cancel(usize, Weather),
    Restock(usize, i64, Weather),
    Set(usize, i64, Weather),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lines = || prop::collection::vec((0..SKUS, 1..5_i64), 1..4);
    let step = prop_oneof![
        12 => (lines(), weather()).prop_map(|(lines, weather)| Step::Order(lines, weather)),
        1 => (lines(), weather()).prop_map(|(lines, weather)| Step::Overload(lines, weather)),
        3 => (any::<usize>(), weather()).prop_map(|(pick, weather)| Step::Cancel(pick, weather)),
        2 => (0..SKUS, 1..6_i64, weather()).prop_map(|(sku, units, weather)| Step::Restock(sku, units, weather)),
        1 => (0..SKUS, 0..25_i64, weather()).prop_map(|(sku, units, weather)| Step::Set(sku, units, weather)),
    ];
    prop::collection::vec(step, 0..120)
}

fn weather() -> impl Strategy<Value = Weather> {
    let kind = prop_oneof![
        8 => Just(Reply::Arrives),
        1 => Just(Reply::LostOnce),
        1 => Just(Reply::LostForGood),
        1 => Just(Reply::RefusedFirst),
        1 => Just(Reply::Twice),
        1 => Just(Reply::Foreign),
    ];
    (kind, 0.5..200.0, 0.1..200.0).prop_map(|(kind, before_ms, after_ms)| Weather {
        kind,
        before_ms,
        after_ms,
    })
}

const SKUS: usize = 3;

pub(crate) fn sku(number: usize) -> String {
    format!("sku-{number}")
}

/// The books so far.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) facts: Facts,
    stock: BTreeMap<String, i64>,
    now: f64,
    serial: i64,
    keys: usize,
}

impl World {
    /// A world after some traffic. All SKUs have been set first, as the load does.
    pub(crate) fn after(steps: &[Step]) -> Facts {
        let mut world = Self { now: 1_800_000_000_000.0, ..Self::default() };
        world.facts.history = Some(Vec::new());
        let calm = Weather { kind: Reply::Arrives, before_ms: 1.0, after_ms: 1.0 };
        for number in 0..SKUS {
            world.take(&Step::Set(number, 20, calm));
        }
        for step in steps {
            world.take(step);
        }
        let fence = |sku: &str| {
            let tokens = world.facts.ledger.iter().filter(|row| row.sku == sku).filter_map(|row| row.token);
            tokens.max().unwrap_or_default()
        };
        let stock = world.stock.iter();
        let row = |(sku, on_hand): (&String, &i64)| StockRow {
            sku: sku.clone(),
            on_hand: *on_hand,
            fence: fence(sku),
        };
        let stock = stock.map(row).collect();
        world.facts.stock = stock;
        world.facts.guarded = Guarded::ByFence;
        world.facts.locks = Some(LeftLocks { watches: Some((6, 6)), ..LeftLocks::default() });
        world.facts.sessions = Some(LeftSessions::default());
        world.facts
    }

    fn take(&mut self, step: &Step) {
        // A row is written, then committed, and only then comes the next one.
        self.now += 3.0;
        match step {
            Step::Order(lines, weather) => self.order(lines, *weather),
            Step::Overload(lines, weather) => {
                let request = self.request(Op::Order, lines, *weather);
                self.answer(&request, *weather, &Answer::overloaded());
            }
            Step::Cancel(pick, weather) => self.cancel(*pick, *weather),
            Step::Restock(number, units, weather) => {
                let request = self.request(Op::Restock, &[(*number, *units)], *weather);
                self.enter(&sku(*number), Kind::Restock, None, *units);
                self.answer_once(&request, *weather, &Answer::ok(200));
            }
            Step::Set(number, units, weather) => {
                let request = self.request(Op::Set, &[(*number, *units)], *weather);
                let before = self.stock.get(&sku(*number)).copied().unwrap_or_default();
                self.enter(&sku(*number), Kind::Set, None, *units - before);
                self.answer_once(&request, *weather, &Answer::ok(200));
            }
        }
    }

    fn order(&mut self, lines: &[(usize, i64)], weather: Weather) {
        let request = self.request(Op::Order, lines, weather);
        let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
        for line in &request.lines {
            *wanted.entry(line.sku.clone()).or_default() += line.quantity;
        }
        let short = wanted.iter().find(|(sku, units)| self.stock[*sku] < **units);
        if let Some((sku, _)) = short {
            let refusal = Answer::out_of_stock(sku, self.stock[sku]);
            self.keep(&request, None);
            self.answer(&request, weather, &refusal);
            return;
        }
        let id = format!("{:08}-0000-4000-8000-000000000000", self.facts.orders.len() + 1);
        let lines = wanted.iter().map(|(sku, units)| Line::new(sku, *units)).collect();
        for (sku, units) in &wanted {
            self.enter(sku, Kind::Order, Some(id.clone()), -units);
        }
        let trace_id = request.trace_id.clone().unwrap_or_default();
        self.facts.orders.push(OrderRow { id: id.clone(), cancelled: false, trace_id, lines });
        self.keep(&request, Some(id.clone()));
        self.answer(&request, weather, &Answer { order_id: Some(id), ..Answer::ok(201) });
    }

    fn cancel(&mut self, pick: usize, weather: Weather) {
        if self.facts.orders.is_empty() {
            return;
        }
        let number = pick % self.facts.orders.len();
        let OrderRow { id, cancelled, lines, .. } = self.facts.orders[number].clone();
        let request = Record { order_id: Some(id.clone()), ..self.request(Op::Cancel, &[], weather) };
        if !cancelled {
            for line in &lines {
                self.enter(&line.sku, Kind::Cancel, Some(id.clone()), line.quantity);
            }
            self.facts.orders[number].cancelled = true;
        }
        self.answer(&request, weather, &Answer { order_id: Some(id), ..Answer::ok(200) });
    }

    fn enter(&mut self, sku: &str, kind: Kind, order_id: Option<String>, delta: i64) {
        self.serial += 1;
        let stock = self.stock.entry(sku.to_owned()).or_default();
        *stock += delta;
        self.facts.ledger.push(LedgerRow {
            id: self.serial,
            sku: sku.to_owned(),
            kind,
            order_id,
            delta,
            on_hand_after: *stock,
            token: Some(1000 + self.serial),
            lock_node: Some(format!("/locks/stock:{sku}/_c_{}-lock-0000000001", self.serial)),
            at: self.now - 2.0,
        });
    }

    fn keep(&mut self, request: &Record, order_id: Option<String>) {
        self.facts.keys.push(KeyRow { key: request.key.clone(), order_id });
    }

    /// The first attempt, not yet answered.
    fn request(&mut self, op: Op, lines: &[(usize, i64)], weather: Weather) -> Record {
        self.keys += 1;
        Record {
            run: "world".to_owned(),
            user: 0,
            host: "http://127.0.0.1:1".to_owned(),
            op,
            key: format!("key-{}", self.keys),
            attempt: 1,
            sent_at: self.now - 2.0 - weather.before_ms,
            received_at: self.now + weather.after_ms,
            lines: lines.iter().map(|(number, units)| Line::new(sku(*number), *units)).collect(),
            status: 0,
            code: None,
            placed: None,
            order_id: None,
            instance: None,
            token: None,
            position: None,
            wait_ms: None,
            hold_ms: None,
            available: None,
            short_sku: None,
            trace_id: Some(format!("{:032x}", self.keys)),
            error: None,
        }
    }

    /// Records the attempts of a request that may be retried.
    fn answer(&mut self, request: &Record, weather: Weather, answer: &Answer) {
        let Some(history) = &mut self.facts.history else { return };
        let answered = answer.of(request);
        let later = |attempt, by: f64| {
            let (sent_at, received_at) = (answered.received_at + by, answered.received_at + by + 5.0);
            // A retry has a trace of its own.
            let trace_id = answered.trace_id.as_ref().map(|trace| format!("{attempt}{}", &trace[1..]));
            Record { attempt, sent_at, received_at, trace_id, ..answered.clone() }
        };
        match weather.kind {
            Reply::Foreign => {}
            Reply::LostForGood => history.push(request.clone()),
            Reply::Arrives => history.push(answered),
            Reply::LostOnce => history.extend([request.clone(), later(2, 20.0)]),
            Reply::Twice => history.extend([later(2, 0.0), answered.clone()]),
            Reply::RefusedFirst => {
                let refused = Answer::overloaded().of(request);
                let sent_at = request.sent_at - 30.0;
                let first = Record { sent_at, received_at: sent_at + 20.0, trace_id: None, ..refused };
                history.extend([first, Record { attempt: 2, ..answered }]);
            }
        }
    }

    /// Records a request without a key, which is sent once.
    fn answer_once(&mut self, request: &Record, weather: Weather, answer: &Answer) {
        let Some(history) = &mut self.facts.history else { return };
        match weather.kind {
            Reply::Foreign => {}
            Reply::LostForGood | Reply::LostOnce => history.push(request.clone()),
            Reply::Arrives | Reply::Twice | Reply::RefusedFirst => history.push(answer.of(request)),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    status: u16,
    code: Option<String>,
    placed: Option<Placed>,
    order_id: Option<String>,
    short_sku: Option<String>,
    available: Option<i64>,
}

impl Answer {
    fn ok(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    fn overloaded() -> Self {
        let code = Some("overloaded".to_owned());
        Self { status: 503, code, placed: Some(Placed::NotPlaced), ..Self::default() }
    }

    pub(crate) fn out_of_stock(sku: &str, available: i64) -> Self {
        Self {
            status: 409,
            code: Some("out-of-stock".to_owned()),
            placed: Some(Placed::NotPlaced),
            order_id: None,
            short_sku: Some(sku.to_owned()),
            available: Some(available),
        }
    }

    pub(crate) fn of(&self, request: &Record) -> Record {
        let Self { status, code, placed, order_id, short_sku, available } = self.clone();
        let order_id = order_id.or_else(|| request.order_id.clone());
        Record { status, code, placed, order_id, short_sku, available, ..request.clone() }
    }
}
