//! The session timeout that a server negotiated: the one that counts, whatever the client asked for.

use std::time::Duration;

use stack::ZooKeeper;

/// The negotiated timeout of a session, from the server that it is connected to. `None` when no server knows it.
pub(super) async fn timeout_of(zookeeper: &ZooKeeper, session_id: i64) -> Option<Duration> {
    for server in 0..zookeeper.servers() {
        if let Ok(answer) = zookeeper.four_letter(server, "cons").await
            && let Some(timeout) = find(&answer, session_id)
        {
            return Some(timeout);
        }
    }
    None
}

/// A line of `cons`: ` /127.0.0.1:36100[1](queued=0,…,sid=0x1000…,lop=PING,est=…,to=2000,lcxid=…)`.
fn find(cons: &str, session_id: i64) -> Option<Duration> {
    let sid = format!("sid={session_id:#x},");
    let line = cons.lines().find(|line| line.contains(&sid))?;
    let millis = line.split(&['(', ',', ')']).find_map(|part| part.strip_prefix("to="))?;
    millis.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::find;
    use std::time::Duration;

    #[test]
    fn the_timeout_is_that_of_the_session_and_of_no_other() {
        let cons = " /127.0.0.1:1[1](queued=0,recved=2,sent=2,sid=0x10,lop=PING,est=9,to=4000,lcxid=0x1)\n \
                    /127.0.0.1:2[1](queued=0,recved=2,sent=2,sid=0x100,lop=PING,est=9,to=2000,lcxid=0x1)\n \
                    /127.0.0.1:3[0](queued=0,recved=1,sent=0)\n";
        assert_eq!(find(cons, 0x100), Some(Duration::from_secs(2)));
        assert_eq!(find(cons, 0x10), Some(Duration::from_secs(4)));
        assert_eq!(find(cons, 0x1), None);
    }
}
