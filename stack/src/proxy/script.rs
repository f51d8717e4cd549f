//! What is to happen to chosen frames.
//!
//! Promised: each choice happens once, to the frame that it names, before a byte of it is passed on. Not promised:
//! which of two choices comes first that name the same frame, other than by their age.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::proxy::{Cut, Message, Op, Silence, Stage};

type Is = Box<dyn Fn(&Message) -> bool + Send>;

/// Which frame is meant: by default the first of all.
pub struct When {
    stage: Option<Stage>,
    op: Option<Op>,
    below: String,
    pass: usize,
    is: Option<Is>,
}

/// What happens to it, and perhaps to its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Its connection ends; the frame and what came behind it are lost. The next connection is carried.
    Cut(Cut),
    /// Its connection stays open and carries nothing any more, from this frame on.
    Mute(Silence),
    /// It is lost, and its connection lives on, which no network does: for clients that count their replies.
    Drop,
    /// It waits, and with it all that is behind it in the same direction: order is kept.
    Delay(Duration),
    /// The same, until the [`Trigger`] releases it or is dropped.
    Hold,
    /// A connect request asks for a new session in place of the one that it wants to resume; other frames pass.
    Forget,
}

/// A choice that was made. Dropping it takes the choice back if it has not happened yet, and releases what it holds.
#[derive(Debug)]
#[must_use = "dropping it takes the choice back"]
pub struct Trigger {
    happened: watch::Receiver<Vec<Message>>,
    release: watch::Sender<bool>,
}

/// What the connection has to do with a frame.
pub(super) enum Verdict {
    Pass,
    Do(Then, watch::Receiver<bool>),
}

struct Armed {
    steps: VecDeque<(When, Then)>,
    happened: watch::Sender<Vec<Message>>,
    release: watch::Receiver<bool>,
}

/// All choices of one proxy that have not happened yet.
#[derive(Default)]
pub(super) struct Script(Mutex<Vec<Armed>>);

impl When {
    /// Any frame.
    pub const fn any() -> Self {
        Self { stage: None, op: None, below: String::new(), pass: 0, is: None }
    }

    /// A request for this.
    pub fn request(op: Op) -> Self {
        Self { stage: Some(Stage::Request), op: Some(op), ..Self::any() }
    }

    /// The reply to a request for this.
    pub fn reply(op: Op) -> Self {
        Self { stage: Some(Stage::Reply), op: Some(op), ..Self::any() }
    }

    /// Only frames about nodes whose path begins so.
    #[must_use]
    pub fn below(mut self, path: impl Into<String>) -> Self {
        self.below = path.into();
        self
    }

    /// Only frames of which this is true.
    #[must_use]
    pub fn that(mut self, is: impl Fn(&Message) -> bool + Send + 'static) -> Self {
        self.is = Some(Box::new(is));
        self
    }

    /// The `n`-th such frame from now on, and not the first, which is number 1.
    #[must_use]
    pub const fn nth(mut self, n: usize) -> Self {
        self.pass = n.saturating_sub(1);
        self
    }

    fn names(&self, message: &Message) -> bool {
        self.stage.is_none_or(|stage| stage == message.stage)
            && self.op.is_none_or(|op| op == message.op)
            && message.path.as_deref().unwrap_or_default().starts_with(&self.below)
            && self.is.as_ref().is_none_or(|is| is(message))
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, op, below, pass, .. } = self;
        write!(f, "When({stage:?} {op:?} below {below:?}, number {})", pass + 1)
    }
}

impl Trigger {
    /// Waits until it has happened, and returns the frame that it happened to. Cancel safe.
    pub async fn happened(&self) -> Message {
        let mut happened = self.happened.clone();
        match happened
            .wait_for(|happened| !happened.is_empty())
            .await
            .map(|happened| happened.last().cloned())
        {
            Ok(Some(message)) => message,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// The frames that it happened to so far; several where a plan is played.
    pub fn so_far(&self) -> Vec<Message> {
        self.happened.borrow().clone()
    }

    /// Lets go of what is held, now and later.
    pub fn release(&self) {
        self.release.send_replace(true);
    }
}

impl Script {
    pub(super) fn arm(&self, steps: impl IntoIterator<Item = (When, Then)>) -> Trigger {
        let (happened, sees) = watch::channel(Vec::new());
        let (release, released) = watch::channel(false);
        self.lock().push(Armed { steps: steps.into_iter().collect(), happened, release: released });
        Trigger { happened: sees, release }
    }

    /// Says what happens to a frame; the first choice that names it is taken, and all of them count it.
    pub(super) fn judge(&self, message: &Message) -> Verdict {
        let mut verdict = Verdict::Pass;
        let mut all = self.lock();
        // A choice whose trigger was dropped was taken back.
        all.retain(|armed| armed.release.has_changed().is_ok());
        for armed in all.iter_mut() {
            let Some((when, then)) = armed.steps.front_mut() else { continue };
            if !when.names(message) {
                continue;
            }
            if when.pass > 0 {
                when.pass -= 1;
            } else if matches!(verdict, Verdict::Pass) {
                verdict = Verdict::Do(*then, armed.release.clone());
                armed.steps.pop_front();
                armed.happened.send_modify(|happened| happened.push(message.clone()));
            }
        }
        verdict
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Armed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script of {} choices", self.lock().len())
    }
}
