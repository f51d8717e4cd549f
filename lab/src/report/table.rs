//! The table at the end of a run: one line a run, columns as wide as what is in them.

use super::model::{Percentiles, RunReport};

const HEAD: [&str; 11] = [
    "mode/writer",
    "fault",
    "accepted",
    "refused",
    "oversold",
    "lost",
    "doubled",
    "fenced",
    "orders/s",
    "lock wait p50/p95/p99 ms",
    "verdict",
];

/// The table of some runs.
pub fn runs(runs: &[RunReport]) -> String {
    render(&HEAD.map(str::to_owned), &runs.iter().map(row).collect::<Vec<_>>())
}

fn row(run: &RunReport) -> Vec<String> {
    vec![
        format!("{}/{}", run.mode, run.writer),
        run.fault.clone(),
        run.orders.accepted.to_string(),
        run.refused().to_string(),
        run.audit.oversold.to_string(),
        run.audit.lost.to_string(),
        run.audit.doubled.to_string(),
        run.fenced_out.to_string(),
        format!("{:.1}", run.orders_per_s),
        three(&run.lock_wait_ms),
        verdict(run),
    ]
}

/// The verdict with what was expected of it.
pub fn verdict(run: &RunReport) -> String {
    if run.as_expected {
        format!("{} (as expected)", run.verdict)
    } else {
        format!("{} (expected {})", run.verdict, run.expected)
    }
}

/// Three percentiles in one cell; a dash where nothing was measured.
pub fn three(p: &Percentiles) -> String {
    let one = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.0}"));
    format!("{}/{}/{}", one(p.p50), one(p.p95), one(p.p99))
}

/// A plain text table; numbers are right-aligned.
pub fn render(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| &row[column])
            .chain(std::iter::once(&head[column]))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| {
                if cell.parse::<f64>().is_ok() {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("  ");
    let mut lines = vec![line(head), rule];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::runs;
    use crate::report::sample;

    #[test]
    fn a_run_is_one_line_with_every_figure() {
        let text = runs(&[sample::oversold(), sample::faulted()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].contains("none/plain") && lines[2].contains("invalid (as expected)"));
        assert!(lines[3].contains("expire-holder+freeze-holder") && lines[3].contains("12/80/120"));
    }
}
