//! Limits that follow from another: a holder that stands still inside its transaction must give the row back before
//! its session can be over, or the next holder waits for it in vain.

use std::time::Duration;

/// Settings of order-service that fit a session timeout: its defaults, lowered where they would reach it.
pub fn within(session_timeout: Duration) -> Vec<(String, String)> {
    let bound = (session_timeout / 2).min(Duration::from_secs(2)).as_millis().to_string();
    ["ORDER_DB_LOCK_TIMEOUT_MS", "ORDER_DB_IDLE_IN_TRANSACTION_MS"]
        .map(|name| (name.to_owned(), bound.clone()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::within;
    use std::time::Duration;

    #[test]
    fn a_short_session_lowers_the_limits_and_a_long_one_leaves_the_defaults() {
        assert!(within(Duration::from_millis(1500)).iter().all(|setting| setting.1 == "750"));
        assert!(within(Duration::from_mins(1)).iter().all(|setting| setting.1 == "2000"));
    }
}
