//! A commit that got no reply: did it happen?
//!
//! Promises a *yes* or a *no* only if PostgreSQL knows, asked on a connection of its own about that very transaction. A
//! look-up of the rows alone could say "not there" about a commit that is still on its way; the transaction id alone could
//! belong to a later transaction after a crash of the server. Together they cannot be wrong. What the time did not suffice
//! for stays unknown.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Store, connection,
    ledger::Receipt,
    statement::{Statement, statement},
};

const STATE: Statement = statement!("SELECT", "SELECT pg_xact_status($1::text::xid8)");

const THERE: Statement =
    statement!("SELECT", "ledger", "SELECT EXISTS (SELECT FROM ledger WHERE id = $1 AND change_id = $2)");

/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);

impl Store {
    /// `Some(true)`: committed; `Some(false)`: rolled back for good; `None`: could not be found out in time.
    pub(super) async fn settle(&self, receipt: &Receipt, until: Instant) -> Option<bool> {
        let asked = async {
            loop {
                match self.ask(receipt).await {
                    Ok(Some(committed)) => return committed,
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "could not ask for the outcome of a commit"),
                }
                sleep(PAUSE).await;
            }
        };
        timeout_at(until, asked).await.ok()
    }

    async fn ask(&self, receipt: &Receipt) -> Result<Option<bool>, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        // First the state, then the row: the row is looked for with a snapshot taken after the state was known.
        let state = self.transaction_state(&mut connection, &receipt.transaction).await?;
        let there = sqlx::query_scalar(THERE.text).bind(receipt.row).bind(receipt.change);
        let there: bool =
            THERE.run(connection::database(&self.options), there.fetch_one(&mut connection)).await?;
        connection.close().await?;
        Ok(match state {
            _ if there => Some(true),
            State::InProgress => None,
            State::Ended => Some(false),
        })
    }

    async fn transaction_state(&self, connection: &mut PgConnection, id: &str) -> Result<State, sqlx::Error> {
        let state = sqlx::query_scalar::<_, Option<String>>(STATE.text).bind(id).fetch_one(connection);
        let state = STATE.run(connection::database(&self.options), state).await;
        match state {
            Ok(Some(state)) if state == "in progress" => Ok(State::InProgress),
            Ok(_) => Ok(State::Ended),
            // "transaction ID is in the future": the server crashed and never made it durable.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22023") => Ok(State::Ended),
            Err(error) => Err(error),
        }
    }
}

enum State {
    InProgress,
    Ended,
}
