//! Takes from a reply's body what the history keeps. Pure; a body that is not what was expected leaves
//! the fields empty, because the status alone already decides.

use serde::{Deserialize, de::DeserializeOwned};

use crate::history::{Op, Placed, Record};

#[derive(Deserialize)]
struct OrderReply {
    id: Option<String>,
    instance: Option<String>,
    lock: Option<LockReply>,
}

#[derive(Deserialize)]
struct LockReply {
    token: Option<i64>,
    position: Option<u64>,
    wait_ms: Option<f64>,
    hold_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Problem {
    code: Option<String>,
    order: Option<Placed>,
    sku: Option<String>,
    available: Option<i64>,
    token: Option<i64>,
}

/// Fills the record from the body.
pub(super) fn fill(record: &mut Record, body: &[u8]) {
    if (200..300).contains(&record.status) {
        if !matches!(record.op, Op::Order | Op::Cancel) {
            return;
        }
        if let Some(reply) = parse::<OrderReply>(body) {
            record.order_id = reply.id.or_else(|| record.order_id.take());
            record.instance = reply.instance;
            if let Some(lock) = reply.lock {
                record.token = lock.token;
                record.position = lock.position;
                record.wait_ms = lock.wait_ms;
                record.hold_ms = lock.hold_ms;
            }
        }
    } else if let Some(problem) = parse::<Problem>(body) {
        record.code = problem.code;
        record.placed = problem.order;
        record.short_sku = problem.sku;
        record.available = problem.available;
        record.token = problem.token;
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Outcome, test_record};

    fn filled(status: u16, body: &str) -> Record {
        let mut record = Record { status, ..test_record() };
        fill(&mut record, body.as_bytes());
        record
    }

    #[test]
    fn an_accepted_order() {
        let record = filled(
            201,
            r#"{"id":"o1","status":"accepted","lines":[],"instance":"a","trace_id":"t",
                "lock":{"mode":"zk-fair","writer":"fenced","token":7,"position":3,"wait_ms":1.5,"hold_ms":2}}"#,
        );
        assert_eq!(record.order_id.as_deref(), Some("o1"));
        assert_eq!((record.token, record.position, record.hold_ms), (Some(7), Some(3), Some(2.0)));
    }

    #[test]
    fn an_order_without_a_lock() {
        let record = filled(201, r#"{"id":"o1","lock":{"mode":"none","token":null,"wait_ms":0}}"#);
        assert_eq!((record.order_id.as_deref(), record.token), (Some("o1"), None));
    }

    #[test]
    fn a_refusal() {
        let record = filled(
            409,
            r#"{"code":"out-of-stock","order":"not-placed","sku":"s","requested":2,"available":1,"token":9}"#,
        );
        assert_eq!(record.outcome(), Outcome::OutOfStock);
        assert_eq!(
            (record.available, record.token, record.short_sku.as_deref()),
            (Some(1), Some(9), Some("s"))
        );
    }

    #[test]
    fn a_page_of_a_proxy() {
        assert_eq!(filled(502, "<html>bad gateway</html>").outcome(), Outcome::Unknown);
    }
}
