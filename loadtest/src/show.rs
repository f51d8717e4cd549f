//! What a person sees: progress while it runs and the figures at the end, on standard error.

use std::time::Duration;

use loadtest::{
    campaign::Progress,
    run::{Done, RunConfig},
    summary::Percentiles,
};

/// One line of progress.
pub(crate) fn progress(config: &RunConfig, time: Duration, progress: Progress) {
    let Progress { requests, retries, accepted, out_of_stock, failed, unknown, in_flight, sold_out } =
        progress;
    eprintln!(
        "[{}] {:5.1} s  accepted {accepted}  out of stock {out_of_stock}  failed {failed}  unknown {unknown}  \
         in flight {in_flight}  requests {requests}  retries {retries}{}",
        config.run,
        time.as_secs_f64(),
        if sold_out { "  SOLD OUT" } else { "" },
    );
}

/// The summary as JSON.
pub(crate) fn json(done: &Done) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(&done.summary)?;
    value["goose_requests"] = done.goose_requests.into();
    serde_json::to_string_pretty(&value)
}

/// The figures for a person.
pub(crate) fn table(done: &Done, config: &RunConfig) {
    let summary = &done.summary;
    let orders = summary.orders;
    let requests: u64 = summary.requests.values().sum();
    eprintln!("\n{} '{}' ended: {}", summary.about.scenario, summary.about.run, summary.about.ended);
    eprintln!(
        "  orders     accepted {}, out of stock {}, failed {}, unknown {}",
        orders.accepted, orders.out_of_stock, orders.failed, orders.unknown
    );
    for (sku, units) in &summary.units_accepted {
        eprintln!("  {sku}: stock at the start {}, units acknowledged {units}", config.stock);
    }
    eprintln!("  rate       {:.1} accepted orders/s over {:.1} s", summary.orders_per_s, summary.wall_s);
    eprintln!("  order      {}", percentiles(summary.order_ms));
    eprintln!("  lock wait  {}", percentiles(summary.lock_wait_ms));
    eprintln!(
        "  requests   {requests}, of which retries {}, without reply {}",
        summary.retries, summary.no_reply
    );
    for (code, count) in &summary.codes {
        eprintln!("    {code} {count}");
    }
    eprintln!("  history    {}", config.history.display());
}

fn percentiles(of: Percentiles) -> String {
    let Percentiles { p50, p95, p99, max } = of;
    let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
    format!("p50 {}  p95 {}  p99 {}  max {} ms", show(p50), show(p95), show(p99), show(max))
}
