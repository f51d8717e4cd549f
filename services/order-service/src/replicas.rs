//! Who may run beside whom.
//!
//! Each replica's ZooKeeper session node says with which mode and writer it runs. Two modes on the same stock do not
//! exclude one another, so whoever finds an older member with another mode refuses to work. Promises that of two that
//! start at the same moment exactly one refuses: the younger node. Without its session a replica admits nothing; it looks
//! again after each rebuilt one, which is younger than everybody.

use std::{fmt, time::Duration};

use serde_json::{Value, json};
use tokio::sync::watch;
use zk_locks::{Member, Session, SessionState};

use crate::lockers::{Mode, Writer};

/// Pause before members are listed again after a failure.
const PAUSE: Duration = Duration::from_millis(200);

/// What a replica says of itself.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name.
    pub instance: String,
    /// Its mode.
    pub mode: &'static Mode,
    /// Its writer.
    pub writer: Writer,
    /// Where it listens.
    pub url: String,
}

impl Identity {
    /// For the session's node.
    pub fn metadata(&self) -> Value {
        json!({
            "instance": self.instance,
            "pid": std::process::id(),
            "mode": self.mode.name,
            "writer": self.writer.as_str(),
            "url": self.url,
        })
    }
}

/// Whether this replica may work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// Not known yet.
    Pending,
    /// Nobody older runs another way.
    Accepted,
    /// Somebody does.
    Refused(Refused),
}

/// Follows the registration.
pub type Registrations = watch::Receiver<Registration>;

/// An older member runs another way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    instance: String,
    url: String,
    theirs: String,
    ours: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, url, theirs, ours } = self;
        write!(
            f,
            "{instance} ({url}) is registered with {theirs}, this replica has {ours}: replicas that lock or write \
             differently do not exclude one another; stop it first, or wait for its session to end if it is dead"
        )
    }
}

/// Looks at the members after each new session; ends only by a refusal, or when the session is closed.
///
/// `transaction_max` is how long PostgreSQL lets a frozen holder keep a row; a session that ends sooner is warned of.
pub async fn watch(
    session: &Session,
    identity: &Identity,
    transaction_max: Duration,
    registration: &watch::Sender<Registration>,
) {
    let mut states = session.watch_state();
    let mut accepted_for = None;
    loop {
        let state = states.borrow_and_update().clone();
        match state {
            SessionState::Connected(info) if accepted_for != Some(info.id) => {
                registration.send_replace(Registration::Pending);
                match session.members().await.map(|members| judge(&members, identity)) {
                    Ok(Some(Ok(()))) => {
                        tracing::info!(session = %info, timeout = ?info.negotiated_timeout, "registered");
                        if info.negotiated_timeout <= transaction_max {
                            tracing::warn!(
                                timeout = ?info.negotiated_timeout,
                                ?transaction_max,
                                "ZooKeeper granted a session shorter than the database's timeouts: a frozen \
                                 holder's transaction can block the next one"
                            );
                        }
                        accepted_for = Some(info.id);
                        registration.send_replace(Registration::Accepted);
                    }
                    Ok(Some(Err(refused))) => {
                        registration.send_replace(Registration::Refused(refused));
                        return;
                    }
                    // Not among the members yet, or no reply: ask again.
                    Ok(None) | Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                }
            }
            // Our node is gone: another mode may have started meanwhile, and without a lock nothing else would stop us.
            SessionState::Lost(_) | SessionState::Connecting => {
                accepted_for = None;
                registration.send_replace(Registration::Pending);
            }
            SessionState::Closed => return,
            // While it is suspended our node is there; a session that came back is the same one.
            _ => {}
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// `None`: we are not among them.
fn judge(members: &[Member], identity: &Identity) -> Option<Result<(), Refused>> {
    let mine = members.iter().find(|member| member.mine)?;
    let way = |mode: &str, writer: &str| format!("mode {mode} and writer {writer}");
    let ours = way(identity.mode.name, identity.writer.as_str());
    let text = |member: &Member, name: &str| member.metadata[name].as_str().unwrap_or_default().to_owned();
    for member in members.iter().filter(|member| member.czxid < mine.czxid) {
        // Others may use the chroot for locks of their own; only replicas name a mode.
        if member.metadata["mode"].is_null() {
            continue;
        }
        let theirs = way(&text(member, "mode"), &text(member, "writer"));
        if theirs != ours {
            let (instance, url) = (text(member, "instance"), text(member, "url"));
            return Some(Err(Refused { instance, url, theirs, ours }));
        }
    }
    Some(Ok(()))
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;
    use crate::lockers;

    fn identity(mode: &str, writer: Writer) -> Identity {
        let mode = lockers::mode(mode).unwrap();
        Identity { instance: "order-1".into(), mode, writer, url: "http://127.0.0.1:1".into() }
    }

    fn member(czxid: i64, metadata: Value, mine: bool) -> Member {
        let since = OffsetDateTime::UNIX_EPOCH;
        Member { session_id: czxid, czxid, instance: None, since, metadata, mine }
    }

    #[test]
    fn only_an_older_member_with_another_way_is_a_reason_to_refuse() {
        let fair = identity("zk-fair", Writer::Fenced);
        let plain = identity("zk-fair", Writer::Plain).metadata();
        let judged = |others: &[(i64, &Value)]| {
            let mut members = vec![member(10, fair.metadata(), true)];
            members.extend(others.iter().map(|(czxid, data)| member(*czxid, (*data).clone(), false)));
            judge(&members, &fair).expect("we are a member").is_ok()
        };
        assert!(judged(&[]));
        assert!(judged(&[(9, &fair.metadata())]));
        assert!(judged(&[(9, &Value::Null)]));
        assert!(judged(&[(11, &plain)]));
        assert!(!judged(&[(9, &plain)]));
        assert!(!judged(&[(9, &identity("none", Writer::Plain).metadata())]));
        assert!(judge(&[member(9, plain, false)], &fair).is_none());
    }
}
