//! Whether every request was answered, and how long the slowest reply took. A replica that was frozen owes no reply
//! for that time. Pure.

use loadtest::history::Record;

use crate::experiments::FaultKind;
use crate::faults::Strike;
use crate::report::model::Replies;

/// Counts the replies of a run.
pub(super) fn of(records: &[Record], strikes: &[Strike]) -> Replies {
    let mut replies = Replies::default();
    for record in records.iter().filter(|record| !met_a_frozen_replica(record, strikes)) {
        if record.status == 0 {
            replies.unanswered += 1;
        } else {
            replies.slowest_ms = replies.slowest_ms.max(record.received_at - record.sent_at);
        }
    }
    replies
}

fn met_a_frozen_replica(record: &Record, strikes: &[Strike]) -> bool {
    strikes.iter().any(|strike| {
        strike.kind == FaultKind::FreezeHolder
            && strike.url == record.host
            && record.sent_at <= strike.until_ms
            && record.received_at >= strike.at_ms
    })
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::experiments::FaultKind;
    use crate::faults::Strike;
    use loadtest::history::Record;

    fn record(host: &str, sent_at: f64, received_at: f64, status: u16) -> Record {
        let text = serde_json::json!({
            "run": "r", "user": 0, "host": host, "op": "order", "key": "k", "attempt": 1,
            "sent_at": sent_at, "received_at": received_at, "status": status,
        });
        serde_json::from_value(text).expect("a record")
    }

    #[test]
    fn a_frozen_replica_owes_no_reply_while_it_stands_still() {
        let freeze = Strike {
            kind: FaultKind::FreezeHolder,
            at_ms: 100.0,
            until_ms: 200.0,
            instance: "a-1".into(),
            url: "http://a".into(),
            token: 1,
            session_id: 1,
            confirmed: true,
            evidence: String::new(),
            wrote_late: false,
        };
        let records = [
            record("http://a", 90.0, 260.0, 0),
            record("http://a", 150.0, 250.0, 201),
            record("http://b", 90.0, 260.0, 0),
            record("http://a", 210.0, 240.0, 201),
        ];
        let replies = of(&records, &[freeze]);
        assert_eq!(replies.unanswered, 1, "the one of the replica that was not frozen");
        assert!((replies.slowest_ms - 30.0).abs() < 1e-9);
    }
}
