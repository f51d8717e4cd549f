//! What a request asks for, known before it is read: the member of a refusal that says what became of it.

use actix_web::{HttpRequest, http::Method};

use super::{body::Unread, input};
use crate::{
    place::Failure,
    problem::{Problem, Standing},
};

/// What is to be changed, and whether other requests may ask for the very same change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Nothing.
    Read,
    /// An order is placed.
    Order { again: bool },
    /// Something else is changed.
    Change { again: bool },
}

impl Subject {
    pub(super) fn of(request: &HttpRequest) -> Self {
        let keyed = request.headers().contains_key(input::KEY);
        match (request.method(), request.match_pattern().as_deref()) {
            (&Method::POST, Some("/orders")) => Self::Order { again: keyed },
            (&Method::POST, Some("/stock/{sku}/restock")) => Self::Change { again: keyed },
            (&Method::POST, Some("/orders/{id}/cancel")) => Self::Change { again: true },
            (&Method::PUT, Some("/stock/{sku}")) => Self::Change { again: false },
            _ => Self::Read,
        }
    }

    /// Refused before it was read: what an earlier request for the same came to is not known here.
    pub(super) fn unread(self, problem: Problem) -> Problem {
        let (Self::Order { again } | Self::Change { again }) = self else { return problem };
        self.say(problem, if again { Standing::Unknown } else { Standing::NotPlaced })
    }

    /// Refused for what it says, which no request that says the same can get.
    pub(super) fn invalid(self, unread: Unread) -> Problem {
        match unread {
            Unread::Partly(problem) => self.unread(problem),
            Unread::Wrong(problem) => self.say(problem, Standing::NotPlaced),
        }
    }

    /// Not served.
    pub(super) fn failed(self, failure: &Failure) -> Problem {
        self.say(failure.problem(), failure.standing())
    }

    fn say(self, problem: Problem, standing: Standing) -> Problem {
        match self {
            Self::Read => problem,
            Self::Order { .. } => problem.order(standing),
            Self::Change { .. } => problem.change(standing),
        }
    }
}
