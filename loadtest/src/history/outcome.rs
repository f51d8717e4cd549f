//! What one attempt allows a client to conclude. Pure.

use super::{Op, Placed, Record};

/// The conclusion from one attempt about what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was done, and the reply says so.
    Accepted,
    /// It was decided and refused for lack of stock; the same key gets the same reply.
    OutOfStock,
    /// It was not done. `retry` says whether the same request may succeed later.
    NotDone {
        /// The refusal is of the moment (overload, lock, dependency), not of the request.
        retry: bool,
    },
    /// It may or may not have been done.
    Unknown,
}

impl Outcome {
    /// Whether another attempt with the same key is worth sending.
    pub const fn wants_retry(self) -> bool {
        matches!(self, Self::Unknown | Self::NotDone { retry: true })
    }
}

impl Record {
    /// What this attempt allows to conclude. A reply that says "placed" or "unknown" is believed over
    /// its status; a 5xx reply that says nothing about the order is *unknown*.
    pub fn outcome(&self) -> Outcome {
        if self.placed == Some(Placed::Placed) || (200..300).contains(&self.status) {
            return Outcome::Accepted;
        }
        if self.placed == Some(Placed::Unknown) {
            return Outcome::Unknown;
        }
        match self.status {
            0 => Outcome::Unknown,
            409 if self.code.as_deref() == Some("out-of-stock") => Outcome::OutOfStock,
            408 | 425 | 429 => Outcome::NotDone { retry: true },
            100..500 => Outcome::NotDone { retry: false },
            _ if self.placed == Some(Placed::NotPlaced) => Outcome::NotDone { retry: self.status == 503 },
            _ if self.op == Op::Read => Outcome::NotDone { retry: true },
            _ => Outcome::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::test_record;

    fn outcome(status: u16, code: Option<&str>, placed: Option<Placed>) -> Outcome {
        Record { status, code: code.map(str::to_owned), placed, ..test_record() }.outcome()
    }

    #[test]
    fn silence_is_unknown() {
        assert_eq!(outcome(0, None, None), Outcome::Unknown);
        assert_eq!(outcome(502, None, None), Outcome::Unknown);
        assert_eq!(outcome(503, Some("unavailable"), Some(Placed::Unknown)), Outcome::Unknown);
    }

    #[test]
    fn a_refusal_of_the_moment_is_retried_and_one_of_the_request_is_not() {
        let not_placed = Some(Placed::NotPlaced);
        assert_eq!(outcome(503, Some("lock-timeout"), not_placed), Outcome::NotDone { retry: true });
        assert_eq!(outcome(500, Some("internal"), not_placed), Outcome::NotDone { retry: false });
        assert_eq!(outcome(422, Some("idempotency-conflict"), not_placed), Outcome::NotDone { retry: false });
        assert_eq!(outcome(404, None, None), Outcome::NotDone { retry: false });
    }

    #[test]
    fn sold_out_and_accepted_are_decided() {
        assert_eq!(outcome(409, Some("out-of-stock"), Some(Placed::NotPlaced)), Outcome::OutOfStock);
        assert_eq!(outcome(201, None, None), Outcome::Accepted);
        assert_eq!(outcome(503, None, Some(Placed::Placed)), Outcome::Accepted);
        assert!(!Outcome::OutOfStock.wants_retry());
    }
}
