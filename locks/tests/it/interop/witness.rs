//! An independent witness: a room in ZooKeeper that everyone who holds enters, and where it looks who else is there.
//!
//! It knows nothing of locks. Whoever enters creates a node of its own in the room, on its own connection, and lists
//! the room after it: of two who are inside together, the later one sees the earlier one.

use std::time::Duration;

use zk_locks::{Guard, Lockable};
use zookeeper_client as zk;

use super::peer::Hand;
use crate::support::{Place, soon};

/// Who may be inside together.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Alone,
    WithReaders,
    AtMost(usize),
}

/// Makes a room; returns its path.
pub(super) async fn room(place: &Place) -> String {
    let room = format!("{}/room", place.chroot);
    let persistent = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
    place.outsider.mkdir(&room, &persistent).await.unwrap();
    room
}

/// Turns of ours; ends with the first violation that is seen. The word is that of the peers.
pub(super) async fn contend(
    lock: impl Lockable,
    rule: Rule,
    turns: usize,
    room: String,
    outsider: zk::Client,
) -> String {
    for turn in 0..turns {
        let guard = match lock.acquire(soon()).await {
            Ok(guard) => guard,
            Err(error) => return format!("error {error} in turn {turn}"),
        };
        let seen = visit(&guard, rule, &room, &outsider).await;
        guard.release().await.unwrap();
        if let Err(seen) = seen {
            return format!("violation {seen}");
        }
    }
    "done".to_owned()
}

async fn visit(guard: &Guard, rule: Rule, room: &str, outsider: &zk::Client) -> Result<(), String> {
    let own = match rule {
        Rule::Alone => format!("{room}/alone"),
        Rule::WithReaders | Rule::AtMost(_) => format!("{room}/ours-{}", guard.token()),
    };
    let persistent = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
    outsider.create(&own, b"", &persistent).await.map_err(|error| format!("{own}: {error}"))?;
    look(rule, room, outsider).await?;
    // Long enough for another to come in, if it could.
    tokio::time::sleep(Duration::from_millis(2)).await;
    look(rule, room, outsider).await?;
    outsider.delete(&own, None).await.map_err(|error| format!("{own}: {error}"))
}

async fn look(rule: Rule, room: &str, outsider: &zk::Client) -> Result<(), String> {
    let inside = outsider.list_children(room).await.map_err(|error| error.to_string())?;
    let fine = match rule {
        Rule::Alone => inside.len() == 1,
        Rule::WithReaders => !inside.iter().any(|name| name == "alone"),
        Rule::AtMost(most) => inside.len() <= most,
    };
    if fine { Ok(()) } else { Err(format!("found {inside:?}")) }
}

/// Tells a peer's hand to do the same.
pub(super) fn tell(hand: &Hand, kind: &str, path: &str, turns: usize, room: &str) {
    hand.tell(&format!("contend {kind} {path} {turns} {room}"));
}
