//! A place of its own for one trial: the victim's session behind a proxy that knows frames, its rivals beside it.

use std::time::Duration;

use futures::StreamExt as _;
use stack::{Frames, Message, Op, Proxy, Then, Trigger, When};
use tokio::time::{Instant, sleep};
use zk_locks::Session;
use zookeeper_client as zk;

use super::subject::{Held, Subject};
use crate::support::{Place, SOON, config, connected, soon};

/// A queue in which nothing happens for so long is at rest. Too short a time only tries less.
pub(super) const AT_REST: Duration = Duration::from_millis(250);

/// So many trials of a subject at once: most of the time each waits.
const AT_ONCE: usize = 5;

/// No acquire has so many frames.
const MANY: usize = 100;

pub(super) struct Trial {
    pub(super) subject: Subject,
    pub(super) victim: Session,
    pub(super) other: Session,
    pub(super) proxy: Proxy<Frames>,
    pub(super) place: Place,
}

impl Trial {
    pub(super) async fn new(subject: Subject) -> Self {
        let place = Place::new().await;
        let proxy = Proxy::start_frames(place.servers.zookeeper().address(0)).unwrap();
        let victim = connected(config(&format!("{}{}", proxy.address(), place.chroot), "victim")).await;
        let other = place.session("other").await;
        Self { subject, victim, other, proxy, place }
    }

    /// The same, with a victim that reaches every server: to take its session over one must get past its reconnects.
    pub(super) async fn without_proxy(subject: Subject) -> Self {
        let trial = Self::new(subject).await;
        let victim = trial.place.session("victim").await;
        Self { victim, ..trial }
    }

    /// Where everything that may be left behind is.
    fn locks(&self) -> String {
        format!("{}/locks", self.place.chroot)
    }

    /// Chooses the `n`-th frame about a lock's nodes from now on.
    pub(super) fn at_frame(&self, n: usize, then: Then) -> Trigger {
        self.proxy.on(When::any().below(self.locks()).nth(n), then)
    }

    /// Somebody else holds it.
    pub(super) async fn block(&self) -> Vec<Held> {
        let mut rivals = Vec::new();
        for _ in 0..self.subject.rivals() {
            rivals.push(self.subject.rival().acquire(&self.other, soon()).await.unwrap());
        }
        rivals
    }

    /// Nodes of contenders, by full path, and their owners.
    pub(super) async fn contenders(&self) -> Vec<(String, i64)> {
        let mut found = Vec::new();
        let mut folders = vec![self.locks()];
        self.place.outsider.sync(&self.locks()).await.unwrap();
        while let Some(folder) = folders.pop() {
            let children = match self.place.outsider.list_children(&folder).await {
                Ok(children) => children,
                Err(zk::Error::NoNode) => continue,
                Err(error) => panic!("{error}"),
            };
            for child in children {
                let path = format!("{folder}/{child}");
                match self.place.outsider.check_stat(&path).await.unwrap() {
                    Some(stat) if stat.ephemeral_owner != 0 => found.push((path, stat.ephemeral_owner)),
                    Some(_) => folders.push(path),
                    None => {}
                }
            }
        }
        found
    }

    /// Nothing is left within `span`: no node and no watch.
    pub(super) async fn is_clean_within(&self, span: Duration, what: &str) {
        let deadline = Instant::now() + span;
        loop {
            let nodes = self.contenders().await;
            let watches = self.place.servers.zookeeper().watches_below(&self.locks()).await.unwrap();
            if nodes.is_empty() && watches.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: left behind: {nodes:?}, watches {watches:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Anyone can have it now.
    pub(super) async fn is_free(&self, what: &str) {
        let next = self.subject.acquire(&self.other, soon()).await;
        next.unwrap_or_else(|error| panic!("{what}: {error:?}")).release().await.unwrap();
    }

    pub(super) async fn end(self) {
        self.other.close(SOON).await.unwrap();
        // Its way may be blocked for good.
        self.victim.close(Duration::from_millis(100)).await.ok();
    }
}

/// Releases what rivals hold.
pub(super) async fn make_way(rivals: Vec<Held>) {
    for rival in rivals {
        rival.release().await.unwrap();
    }
}

/// A frame in words.
pub(super) fn named(message: &Message) -> String {
    let Message { stage, op, path, .. } = message;
    let name = path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let name = if *op == Op::Notification { format!("of {name}") } else { name.to_owned() };
    format!("{stage:?} {op:?} {name}")
}

/// Runs a trial at the first frame of every subject, at the second, and so on, until there is no such frame any more.
/// The trial says which frame it was about. Returns how many there were.
pub(super) async fn at_every_frame<F>(trial: impl Fn(Subject, usize) -> F) -> usize
where
    F: Future<Output = Option<String>>,
{
    let of_subject = async |subject: Subject| {
        let trials = futures::stream::iter(1..MANY).map(|n| trial(subject, n)).buffered(AT_ONCE);
        let frames: Vec<_> =
            trials.take_while(|frame| futures::future::ready(frame.is_some())).collect().await;
        // A create and its reply at least, or nothing was tried; and an end, or it was not all of them.
        assert!((2..MANY - 1).contains(&frames.len()), "{subject}: {frames:?}");
        frames.len()
    };
    futures::future::join_all(Subject::ALL.map(of_subject)).await.into_iter().sum()
}
