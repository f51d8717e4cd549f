//! Where to look at a run: searches of Jaeger, the dashboard at that time. Pure.

use serde::{Deserialize, Serialize};

/// A little before and after, so that nothing is cut off at the edges.
const MARGIN_MS: f64 = 5000.0;

/// Addresses of the pages, as a browser reaches them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// Jaeger.
    pub jaeger: String,
    /// Grafana, where the stack has one.
    pub grafana: Option<String>,
    /// Prometheus.
    pub prometheus: String,
}

/// Links to what a run left in the telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Jaeger: orders that took as long as the slowest twentieth.
    pub slowest_orders: String,
    /// Jaeger: orders whose lock was lost.
    pub lost_locks: String,
    /// Jaeger: orders whose write was refused by the fence.
    pub fenced_writes: String,
    /// Grafana: *Oversell at a glance* at the time of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dashboard: Option<String>,
    /// Prometheus: what is wrong now.
    pub alerts: String,
}

impl Pages {
    /// The links of a run between two moments, in milliseconds since the Unix epoch. `slow_ms`: what counts as slow.
    pub fn links(&self, from_ms: f64, to_ms: f64, slow_ms: Option<f64>) -> Links {
        let (from, to) = (from_ms - MARGIN_MS, to_ms + MARGIN_MS);
        let search = |more: &str| {
            let span = format!("start={:.0}&end={:.0}", from * 1000.0, to * 1000.0);
            let page = &self.jaeger;
            format!(
                "{page}/search?service=order-service&operation=order.place&{span}&limit=50&lookback=custom{more}"
            )
        };
        // `tags` is a JSON object: {"order.outcome":"…"}.
        let outcome = |word: &str| search(&format!("&tags=%7B%22order.outcome%22%3A%22{word}%22%7D"));
        let slow = slow_ms.map_or_else(String::new, |ms| format!("&minDuration={:.0}us", ms * 1000.0));
        let dashboard = |page: &String| format!("{page}/d/oversell?from={from:.0}&to={to:.0}");
        Links {
            slowest_orders: search(&slow),
            lost_locks: outcome("lock-lost"),
            fenced_writes: outcome("fenced-out"),
            dashboard: self.grafana.as_ref().map(dashboard),
            alerts: format!("{}/alerts", self.prometheus),
        }
    }
}

impl Links {
    /// Each link there is, after what it shows.
    pub fn each(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("slowest orders", Some(&self.slowest_orders)),
            ("lost locks", Some(&self.lost_locks)),
            ("fenced writes", Some(&self.fenced_writes)),
            ("dashboard", self.dashboard.as_ref()),
            ("alerts", Some(&self.alerts)),
        ];
        all.into_iter().filter_map(|(what, link)| Some((what, link?.as_str()))).collect()
    }

    /// One line each.
    pub fn text(&self) -> String {
        let lines = self.each().into_iter().map(|(what, link)| format!("{what:<15} {link}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn links_name_the_time_of_the_run_in_the_unit_of_each_page() {
        let pages = Pages {
            jaeger: "http://j".into(),
            grafana: Some("http://g".into()),
            prometheus: "http://p".into(),
        };
        let links = pages.links(10_000.0, 20_000.0, Some(12.5));
        assert!(links.slowest_orders.contains("start=5000000&end=25000000"), "{links:?}");
        assert!(links.slowest_orders.ends_with("&minDuration=12500us"), "{links:?}");
        assert!(links.lost_locks.contains("%22order.outcome%22%3A%22lock-lost%22"), "{links:?}");
        assert_eq!(links.dashboard.as_deref(), Some("http://g/d/oversell?from=5000&to=25000"));
        let without = Pages { grafana: None, ..pages }.links(0.0, 1.0, None);
        assert!(!without.text().contains("dashboard") && without.text().contains("http://p/alerts"));
    }
}
