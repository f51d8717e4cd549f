//! Whose turn it is: a pure function of the children of a lock directory and the own node.
//!
//! Promises exclusion by order of sequence numbers alone, tolerates foreign children, and survives the wrap of
//! the server's 32-bit counter. It does no I/O, so that the library and a model checker run the same code.

use crate::node::{Access, parse};
use crate::recipe::SIMPLE_NODE;

/// What a contender learns from one listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nobody is in the way.
    Mine,
    /// Somebody is in the way.
    Behind {
        /// Name of the nearest contender in the way: the one node to watch.
        node: String,
        /// How many are in the way.
        position: usize,
    },
    /// The own node is not there.
    Gone,
}

/// The turn of a contender: a writer (every exclusive lock is one) waits for all that came before it, a reader
/// for the writers that came before it.
///
/// Names tell what a contender wants and when it came: `…lock-<seq>` and `…__WRIT__<seq>` are Curator's writers,
/// `…__READ__<seq>` its readers, `…-W-<seq>` and `…-R-<seq>` those of the broadcast recipe, `…__lock__<seq>` and
/// `…__rlock__<seq>` kazoo's; other names are ignored. The distance between two numbers is taken modulo 2³², so
/// that `-2147483648` comes right after `2147483647`: this is right as long as fewer than 2³¹ nodes were
/// created during the life of the oldest waiter.
///
/// ```
/// use zk_locks::turn::{Turn, turn};
/// let queue = ["a-__READ__0000000003", "config", "b-__WRIT__0000000002", "c-__READ__0000000004"];
/// let behind = |node: &str, position| Turn::Behind { node: node.into(), position };
/// assert_eq!(turn(&queue, "b-__WRIT__0000000002"), Turn::Mine);
/// assert_eq!(turn(&queue, "a-__READ__0000000003"), behind("b-__WRIT__0000000002", 1));
/// assert_eq!(turn(&queue, "c-__READ__0000000004"), behind("b-__WRIT__0000000002", 1));
/// assert_eq!(turn(&queue, "d-__WRIT__0000000005"), Turn::Gone);
/// ```
pub fn turn<S: AsRef<str>>(children: &[S], own: &str) -> Turn {
    let Some((access, own_sequence)) = parse(own) else { return Turn::Gone };
    let mut present = false;
    let mut position = 0;
    let mut nearest: Option<(i32, &str)> = None;
    for child in children.iter().map(AsRef::as_ref) {
        if child == own {
            present = true;
            continue;
        }
        let Some((other, sequence)) = parse(child) else { continue };
        let distance = own_sequence.wrapping_sub(sequence);
        // The server gives no number twice; if somebody else did, one of the two must wait.
        let came_first = distance > 0 || (distance == 0 && child < own);
        if came_first && (access, other) != (Access::Read, Access::Read) {
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
    let ahead = |a: &str, b: &str| match (parse(a), parse(b)) {
        (Some((_, a)), Some((_, b))) => b.wrapping_sub(a) > 0,
        _ => true,
    };
    names
        .filter(|name| *name == SIMPLE_NODE || parse(name).is_some())
        .reduce(|head, next| if ahead(next, head) { next } else { head })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name((access, sequence): (Access, i32)) -> String {
        let mark = match access {
            Access::Read => "__READ__",
            Access::Write => "__WRIT__",
        };
        format!("_c_{:08x}-{mark}{sequence:010}", sequence.cast_unsigned())
    }

    /// A queue of consecutive or gappy numbers from any start, the wrap included, in any listing order, with
    /// foreign children in between.
    fn queues() -> impl Strategy<Value = (Vec<(Access, i32)>, Vec<String>)> {
        let start = prop_oneof![any::<i32>(), (i32::MAX - 20)..=i32::MAX, Just(-3)];
        let arrivals = (1..5i32, prop_oneof![Just(Access::Read), Just(Access::Write)]);
        (start, proptest::collection::vec(arrivals, 1..30)).prop_flat_map(|(start, arrivals)| {
            let mut at = start;
            let queue: Vec<_> = arrivals
                .into_iter()
                .map(|(gap, access)| {
                    at = at.wrapping_add(gap);
                    (access, at)
                })
                .collect();
            let mut children: Vec<String> = queue.iter().copied().map(name).collect();
            children.extend(["config".into(), "lock".into(), "x-lock-abc".into()]);
            (Just(queue), Just(children).prop_shuffle())
        })
    }

    proptest! {
        /// The rule of read/write locks: one writer alone, or readers only; and somebody always.
        #[test]
        fn whose_turn_it_is_may_be_inside_together((queue, children) in queues()) {
            let inside: Vec<_> =
                queue.iter().copied().filter(|&own| turn(&children, &name(own)) == Turn::Mine).collect();
            let writers = inside.iter().filter(|(access, _)| *access == Access::Write).count();
            prop_assert!(!inside.is_empty());
            prop_assert!(writers == 0 || inside.len() == 1, "{:?}", inside);
            prop_assert!(inside.contains(&queue[0]), "the oldest is always inside");
        }

        /// Case 18: a reader that comes after a writer waits for it, so that readers never starve a writer.
        #[test]
        fn everyone_waits_for_the_nearest_in_the_way((queue, children) in queues()) {
            for (index, &own) in queue.iter().enumerate() {
                let in_the_way: Vec<_> = queue[..index]
                    .iter()
                    .copied()
                    .filter(|(access, _)| own.0 == Access::Write || *access == Access::Write)
                    .collect();
                let expected = in_the_way.last().map_or(Turn::Mine, |&nearest| Turn::Behind {
                    node: name(nearest),
                    position: in_the_way.len(),
                });
                prop_assert_eq!(turn(&children, &name(own)), expected);
            }
        }

        #[test]
        fn whoever_is_not_listed_is_gone((queue, children) in queues(), pick in any::<prop::sample::Index>()) {
            let own = name(queue[pick.index(queue.len())]);
            let others: Vec<&String> = children.iter().filter(|child| **child != own).collect();
            prop_assert_eq!(turn(&others, &own), Turn::Gone);
        }

        #[test]
        fn the_head_is_the_oldest((queue, children) in queues()) {
            let contenders: Vec<&String> = children.iter().filter(|child| *child != SIMPLE_NODE).collect();
            let oldest = name(queue[0]);
            prop_assert_eq!(head(&contenders), Some(oldest.as_str()));
        }
    }

    /// Case 13: the oldest node holds where the counter wraps.
    #[test]
    fn the_wrap_of_the_counter_keeps_the_oldest_first() {
        let [oldest, next, last] = [i32::MAX, i32::MIN, i32::MIN + 1].map(|at| name((Access::Write, at)));
        let children = [next.clone(), oldest.clone(), last];
        assert_eq!(turn(&children, &oldest), Turn::Mine);
        assert_eq!(turn(&children, &next), Turn::Behind { node: oldest, position: 1 });
    }

    /// From Curator 5.5 on, a writer that becomes a reader makes the reader's node with its own number.
    #[test]
    fn a_downgrade_of_curator_keeps_a_writer_out_and_lets_a_reader_in() {
        let (old, new) = ("_c_f-__WRIT__0000000004", "_c_a-__READ__0000000004");
        let (writer, reader) = ("_c_b-__WRIT__0000000005", "_c_c-__READ__0000000005");
        let behind = |node: &str, position| Turn::Behind { node: node.into(), position };
        assert!(matches!(turn(&[old, new, writer], writer), Turn::Behind { position: 2, .. }));
        assert_eq!(turn(&[new, writer], writer), behind(new, 1));
        assert_eq!(turn(&[old, new, reader], reader), behind(old, 1));
        assert_eq!(turn(&[new, reader], reader), Turn::Mine);
    }

    #[test]
    fn two_with_one_number_are_not_both_inside() {
        let children = ["a-lock-0000000001", "b-lock-0000000001"];
        assert_eq!(turn(&children, "a-lock-0000000001"), Turn::Mine);
        assert!(matches!(turn(&children, "b-lock-0000000001"), Turn::Behind { position: 1, .. }));
    }
}
