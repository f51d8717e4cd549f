//! Whose turn it is: a pure function of the children of a lock directory and the own node.
//!
//! Promises exclusion by order of sequence numbers alone, tolerates foreign children, and survives the wrap of
//! the server's 32-bit counter. It does no I/O, so that the library and a model checker run the same code.

use crate::node;
use crate::recipe::SIMPLE_NODE;

/// What a contender learns from one listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nobody is ahead.
    Mine,
    /// Somebody is ahead.
    Behind {
        /// Name of the nearest contender ahead: the one node to watch.
        node: String,
        /// How many are ahead.
        position: usize,
    },
    /// The own node is not there.
    Gone,
}

/// The turn of an exclusive lock: contenders enter in the order of their sequence numbers.
///
/// `own` and the contenders among `children` are names in Curator's layout, `…lock-<seq>`; other names are
/// ignored. The distance between two numbers is taken modulo 2³², so that `-2147483648` comes right after
/// `2147483647`: this is right as long as fewer than 2³¹ nodes were created during the life of the oldest
/// waiter.
///
/// ```
/// use zk_locks::turn::{Turn, exclusive};
/// let children = ["a-lock-0000000003", "config", "b-lock-0000000002"];
/// assert_eq!(exclusive(&children, "b-lock-0000000002"), Turn::Mine);
/// assert_eq!(
///     exclusive(&children, "a-lock-0000000003"),
///     Turn::Behind { node: "b-lock-0000000002".into(), position: 1 }
/// );
/// assert_eq!(exclusive(&children, "c-lock-0000000004"), Turn::Gone);
/// ```
pub fn exclusive<S: AsRef<str>>(children: &[S], own: &str) -> Turn {
    let Some(own_sequence) = node::sequence(own) else { return Turn::Gone };
    let mut present = false;
    let mut position = 0;
    let mut nearest: Option<(i32, &str)> = None;
    for child in children.iter().map(AsRef::as_ref) {
        if child == own {
            present = true;
            continue;
        }
        let Some(sequence) = node::sequence(child) else { continue };
        let distance = own_sequence.wrapping_sub(sequence);
        if distance > 0 {
            position += 1;
            if nearest.is_none_or(|(closest, _)| distance < closest) {
                nearest = Some((distance, child));
            }
        }
    }
    match (present, nearest) {
        (false, _) => Turn::Gone,
        (true, None) => Turn::Mine,
        (true, Some((_, node))) => Turn::Behind { node: node.to_owned(), position },
    }
}

/// The contender that nobody is ahead of; `None` without contenders. The single node of the simple recipe counts.
pub(crate) fn head<S: AsRef<str>>(children: &[S]) -> Option<&str> {
    let names = children.iter().map(AsRef::as_ref);
    let ahead = |a: &str, b: &str| match (node::sequence(a), node::sequence(b)) {
        (Some(a), Some(b)) => b.wrapping_sub(a) > 0,
        _ => true,
    };
    names
        .filter(|name| *name == SIMPLE_NODE || node::sequence(name).is_some())
        .reduce(|head, next| if ahead(next, head) { next } else { head })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(sequence: i32) -> String {
        format!("_c_{:08x}-lock-{sequence:010}", sequence.cast_unsigned())
    }

    /// A queue of consecutive or gappy numbers from any start, the wrap included, in any listing order, with
    /// foreign children in between.
    fn queues() -> impl Strategy<Value = (Vec<i32>, Vec<String>)> {
        let start = prop_oneof![any::<i32>(), (i32::MAX - 20)..=i32::MAX, Just(-3)];
        (start, proptest::collection::vec(1..5i32, 1..30)).prop_flat_map(|(start, gaps)| {
            let mut at = start;
            let queue: Vec<i32> = gaps
                .into_iter()
                .map(|gap| {
                    at = at.wrapping_add(gap);
                    at
                })
                .collect();
            let mut children: Vec<String> = queue.iter().copied().map(name).collect();
            children.extend(["config".into(), "lock".into(), "x-lock-abc".into()]);
            (Just(queue), Just(children).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn exactly_the_oldest_has_its_turn((queue, children) in queues()) {
            let winners: Vec<i32> =
                queue.iter().copied().filter(|&own| exclusive(&children, &name(own)) == Turn::Mine).collect();
            prop_assert_eq!(winners, vec![queue[0]]);
            // `lock` is a foreign child here: of a fair lock it is the simple recipe's, seen by an inspector alone.
            let queued: Vec<&String> = children.iter().filter(|child| *child != SIMPLE_NODE).collect();
            prop_assert_eq!(head(&queued).map(str::to_owned), Some(name(queue[0])));
        }

        #[test]
        fn everyone_else_waits_for_the_one_before((queue, children) in queues()) {
            for pair in queue.windows(2).enumerate() {
                let (ahead, neighbours) = pair;
                prop_assert_eq!(
                    exclusive(&children, &name(neighbours[1])),
                    Turn::Behind { node: name(neighbours[0]), position: ahead + 1 }
                );
            }
        }

        #[test]
        fn whoever_is_not_listed_is_gone((queue, children) in queues(), pick in any::<prop::sample::Index>()) {
            let own = name(queue[pick.index(queue.len())]);
            let others: Vec<&String> = children.iter().filter(|child| **child != own).collect();
            prop_assert_eq!(exclusive(&others, &own), Turn::Gone);
        }
    }

    #[test]
    fn the_wrap_of_the_counter_keeps_the_oldest_first() {
        let children = [name(i32::MIN), name(i32::MAX), name(i32::MIN + 1)];
        assert_eq!(exclusive(&children, &name(i32::MAX)), Turn::Mine);
        assert_eq!(exclusive(&children, &name(i32::MIN)), Turn::Behind { node: name(i32::MAX), position: 1 });
    }
}
