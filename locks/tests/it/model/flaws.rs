//! What the model finds: the dangers that the documents tell of, and flaws that the library does not have. A model
//! that finds none of them would prove nothing where it finds nothing.

use zk_locks::Access::{Read, Write};
use zk_locks::turn::Turn;

use super::database::Writer;
use super::properties::{EXCLUSION, LEASE, NO_LOST_UPDATE, ONE_NODE, ORDER, SERVED, TOKENS_RISE};
use super::search::{fails, holds, still_holds};
use super::{Fault, Flaw, Lease, LockModel, Recipe, TurnFunction};

/// Two contenders for a mutex, and one session that may end.
fn two(writer: Writer) -> LockModel {
    LockModel {
        writer,
        faults: &[Fault::Expires],
        faults_max: 1,
        ..LockModel::new(Recipe::FairMutex, &[Write; 2])
    }
}

#[test]
fn the_fence_at_the_last_write_loses_updates_with_every_token_in_order() {
    let what = "fence at the write";
    let found = fails(what, NO_LOST_UPDATE, &two(Writer::FencedAtTheWrite));
    let documents = include_str!("../../../../docs/guarantees.md");
    assert!(documents.contains(&found), "docs/guarantees.md tells another story");
    still_holds(what, TOKENS_RISE, &two(Writer::FencedAtTheWrite));
}

#[test]
fn the_plain_writer_loses_updates_once_a_session_ends_too_early() {
    fails("plain", NO_LOST_UPDATE, &two(Writer::Plain));
}

/// The lease does not help: a frozen process does not look at it.
#[test]
fn a_kept_lease_does_not_save_the_plain_writer() {
    fails("plain, lease kept", NO_LOST_UPDATE, &LockModel { lease: Lease::Kept, ..two(Writer::Plain) });
}

/// What the plain writer loses, it loses by a fault: the lock itself excludes.
#[test]
fn without_a_fault_the_plain_writer_loses_nothing() {
    let contenders = LockModel::new(Recipe::FairMutex, &[Write; 3]);
    holds("plain, no faults", LockModel { writer: Writer::Plain, orders: 2, ..contenders });
}

/// Which of the two does what: taking the row with the read keeps updates; the token keeps the holders' order.
#[test]
fn a_locked_row_without_a_token_loses_nothing_and_lets_a_stale_holder_in() {
    still_holds("locked row", NO_LOST_UPDATE, &two(Writer::LockedRow));
    fails("locked row", TOKENS_RISE, &two(Writer::LockedRow));
}

fn anyone_in(_: &[&str], _: &str) -> Turn {
    Turn::Mine
}

fn in_the_order_of(came_first: impl Fn(&str, &str) -> bool, children: &[&str], own: &str) -> Turn {
    let ahead: Vec<&&str> = children.iter().filter(|other| came_first(other, own)).collect();
    match ahead.last() {
        None => Turn::Mine,
        Some(node) => Turn::Behind { node: (**node).to_owned(), position: ahead.len() },
    }
}

fn by_name(children: &[&str], own: &str) -> Turn {
    in_the_order_of(|other, own| other.starts_with("_c_") && other < own, children, own)
}

fn without_the_wrap(children: &[&str], own: &str) -> Turn {
    let sequence = |name: &str| name.rsplit_once("lock-").and_then(|(_, digits)| digits.parse::<i32>().ok());
    let first = |other: &str, own: &str| sequence(other).is_some_and(|other| Some(other) < sequence(own));
    in_the_order_of(first, children, own)
}

fn readers_do_not_wait(children: &[&str], own: &str) -> Turn {
    if own.contains("__READ__") { Turn::Mine } else { zk_locks::turn::turn(children, own) }
}

fn writers_wait_for_writers_only(children: &[&str], own: &str) -> Turn {
    let writers: Vec<&str> = children.iter().copied().filter(|child| child.contains("__WRIT__")).collect();
    if own.contains("__WRIT__") {
        zk_locks::turn::turn(&writers, own)
    } else {
        zk_locks::turn::turn(children, own)
    }
}

#[test]
fn wrong_turns_are_caught_without_any_fault() {
    let wrong: [(&str, TurnFunction); 3] =
        [("anyone in", anyone_in), ("by name", by_name), ("without the wrap", without_the_wrap)];
    for (what, turn) in wrong {
        let model = LockModel { turn, ..LockModel::new(Recipe::FairMutex, &[Write; 2]) };
        fails(what, EXCLUSION, &model);
        fails(what, ORDER, &model);
    }
    let wrong: [(&str, TurnFunction); 2] = [
        ("readers do not wait", readers_do_not_wait),
        ("writers wait for writers only", writers_wait_for_writers_only),
    ];
    for (what, turn) in wrong {
        fails(what, EXCLUSION, &LockModel { turn, ..LockModel::new(Recipe::FairReadWrite, &[Read, Write]) });
    }
}

/// The lock only decides how much work is wasted.
#[test]
fn the_fence_loses_nothing_even_if_the_lock_lets_anyone_in() {
    let model = LockModel { turn: anyone_in, orders: 2, faults_max: 2, ..two(Writer::Fenced) };
    still_holds("anyone in, fenced", NO_LOST_UPDATE, &model);
    still_holds("anyone in, fenced", TOKENS_RISE, &model);
    fails("anyone in, plain", NO_LOST_UPDATE, &LockModel { writer: Writer::Plain, ..model });
}

#[test]
fn a_second_create_after_a_lost_reply_is_caught() {
    let model =
        LockModel { flaw: Some(Flaw::CreatesAgain), faults: &[Fault::LosesMessage], ..two(Writer::Fenced) };
    fails("creates again", ONE_NODE, &model);
    fails("creates again", SERVED, &model);
}

#[test]
fn a_waiter_that_does_not_look_again_is_caught() {
    for fault in [&[Fault::GivesUp], &[Fault::Expires], &[Fault::NodeRemoved], &[Fault::Crashes]] {
        let three = LockModel::new(Recipe::FairMutex, &[Write; 3]);
        let model = LockModel { flaw: Some(Flaw::WokenMeansMine), faults: fault, faults_max: 1, ..three };
        fails(&format!("woken means mine, {fault:?}"), EXCLUSION, &model);
    }
}

#[test]
fn a_watch_that_comes_too_late_is_caught() {
    let two = LockModel::new(Recipe::FairMutex, &[Write; 2]);
    fails("watches what is gone", SERVED, &LockModel { flaw: Some(Flaw::WatchesWhatIsGone), ..two });
}

#[test]
fn a_lease_that_outlasts_its_session_is_caught() {
    let model = LockModel { lease: Lease::Kept, flaw: Some(Flaw::LeaseTooLong), ..two(Writer::Fenced) };
    fails("lease too long", LEASE, &model);
}
