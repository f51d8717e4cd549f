//! Whether every request was answered in time, and how long the slowest reply took. A replica that was frozen, killed or
//! cut off its network owes no reply for that time. Pure.

use std::time::Duration;

use loadtest::history::Record;

use crate::experiments::FaultKind;
use crate::faults::Strike;
use crate::report::model::Replies;

/// The service promises its reply half a second after the deadline; the rest is for the way and for the client.
const ON_TIME: Duration = Duration::from_secs(1);

/// Counts the replies of a run in which a request waits at most `deadline`.
pub(super) fn of(records: &[Record], strikes: &[Strike], deadline: Duration) -> Replies {
    let in_time_ms = (deadline + ON_TIME).as_secs_f64() * 1000.0;
    let mut replies = Replies::default();
    for record in records.iter().filter(|record| !met_a_frozen_replica(record, strikes)) {
        if record.status == 0 {
            replies.unanswered += 1;
        } else {
            let took = record.received_at - record.sent_at;
            replies.slowest_ms = replies.slowest_ms.max(took);
            replies.late += u64::from(took > in_time_ms);
        }
    }
    replies
}

fn met_a_frozen_replica(record: &Record, strikes: &[Strike]) -> bool {
    strikes.iter().any(|strike| {
        matches!(strike.kind, FaultKind::FreezeHolder | FaultKind::KillHolder | FaultKind::CutHolder)
            && strike.url == record.host
            && record.sent_at <= strike.until_ms
            && record.received_at >= strike.at_ms
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let replies = of(&records, &[freeze], Duration::ZERO);
        assert_eq!(replies.unanswered, 1, "the one of the replica that was not frozen");
        assert!((replies.slowest_ms - 30.0).abs() < 1e-9);
        assert_eq!(replies.late, 0);
    }

    #[test]
    fn a_refusal_must_be_in_time_too() {
        let deadline = Duration::from_millis(500);
        let records = [record("http://a", 0.0, 1499.0, 201), record("http://a", 0.0, 1501.0, 503)];
        assert_eq!(of(&records, &[], deadline).late, 1);
    }
}
