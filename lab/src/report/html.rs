//! The page: one file, no script, nothing loaded from outside; it opens offline and prints well.

use std::fmt::Write as _;

use super::WriteError;
use super::model::{Report, RunReport};
use super::{plots, table};

const STYLE: &str = "
:root{color-scheme:light}body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:.2rem}h2{margin-top:2.5rem;border-top:1px solid #ddd;padding-top:1rem}h3{margin:1.4rem 0 .3rem}
table{border-collapse:collapse;font-size:13px;margin:.4rem 0}th,td{padding:.25rem .6rem;border-bottom:1px solid #e5e5e5;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}.valid{color:#2e7d32}.invalid{color:#c62828}.unknown{color:#b26a00}
.ok::before{content:'✓ '}.no::before{content:'✗ '}b.v{font-weight:600}svg{max-width:100%;height:auto}
.muted{color:#666}code{font-size:13px}.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em;vertical-align:-.05em}
details{margin:.6rem 0}";

/// The whole page.
pub fn page(report: &Report) -> Result<String, WriteError> {
    let mut out = String::with_capacity(256 * 1024);
    let verdict = report.verdict;
    push(
        &mut out,
        format_args!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Lockstock report: {verdict}</title><style>{STYLE}</style>\
         <h1>Lockstock report: <b class=\"v {verdict}\">{verdict}</b></h1>\
         <p class=\"muted\">{started} · {seconds:.0} s · seed <code>{seed}</code> · PostgreSQL {pg} · ZooKeeper {zk} · \
         lockstock {version} · {cpus} processors, {memory} MiB, kernel {kernel}, load {load:.1}</p>\
         <p><b>valid</b>: each run ended with the verdict that was expected of it. A claim that danger exists (\
         “without a lock, stock is oversold”) is tested by finding it, so such a run is expected to be \
         <b>invalid</b>.</p>",
            started = text(&report.started_at),
            seconds = report.duration_s,
            seed = report.seed,
            pg = text(&report.versions.postgres),
            zk = text(&report.versions.zookeeper),
            version = text(&report.versions.lockstock),
            cpus = report.machine.cpus,
            memory = report.machine.memory_mib,
            kernel = text(&report.machine.kernel),
            load = report.machine.load_1m,
        ),
    );
    summary(&mut out, &report.runs);
    for run in &report.runs {
        section(&mut out, run)?;
    }
    out.push_str("</html>\n");
    Ok(out)
}

fn summary(out: &mut String, runs: &[RunReport]) {
    let rows = runs.iter().map(|run| {
        vec![
            Cell::Word(format!("{}/{}", run.mode, run.writer)),
            Cell::Word(run.fault.clone()),
            Cell::number(run.orders.accepted),
            Cell::number(run.refused()),
            Cell::number(run.audit.oversold),
            Cell::number(run.audit.lost),
            Cell::number(run.audit.doubled),
            Cell::number(run.fenced_out),
            Cell::Number(format!("{:.1}", run.orders_per_s)),
            Cell::Number(table::three(&run.lock_wait_ms)),
            Cell::Number(table::three(&run.order_ms)),
            Cell::Number(run.recovery_ms.map_or_else(|| "–".into(), |ms| format!("{ms:.0}"))),
            Cell::Markup(verdict(run)),
        ]
    });
    rows_of(
        out,
        &[
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
            "order p50/p95/p99 ms",
            "recovery max ms",
            "verdict",
        ],
        rows,
    );
}

fn section(out: &mut String, run: &RunReport) -> Result<(), WriteError> {
    let load = &run.load;
    push(
        out,
        format_args!(
            "<h2>{name}: {mode}/{writer}, fault {fault}</h2><p>{users} clients wanted {stock} units of <code>{sku}</code> \
         from {replicas} replicas for {seconds:.1} s; the slow part in the critical section took {work} ms; ZooKeeper \
         session timeout {session} ms. Orders: {accepted} accepted, {sold_out} refused as sold out, {failed} refused \
         otherwise (not placed), {unknown} never settled. The slowest reply came after {slowest:.0} ms (the deadline of \
         an order is {limit} ms); {hung} requests got none, {late} got one more \
         than a second after it.</p>",
            name = text(&run.name),
            mode = text(&run.mode),
            writer = text(&run.writer),
            fault = text(&run.fault),
            users = load.users,
            stock = load.stock,
            sku = text(&load.sku),
            replicas = load.replicas,
            seconds = load.duration_s,
            work = load.work_ms,
            session = load.session_timeout_ms,
            accepted = run.orders.accepted,
            sold_out = run.orders.out_of_stock,
            failed = run.orders.failed,
            unknown = run.orders.unknown,
            slowest = run.replies.slowest_ms,
            limit = load.lock_wait_limit_ms,
            hung = run.replies.unanswered,
            late = run.replies.late,
        ),
    );
    push(out, format_args!("<p>{}</p><ul>", verdict(run)));
    for reason in &run.reasons {
        push(out, format_args!("<li>{}</li>", text(reason)));
    }
    out.push_str("</ul>");
    figure(out, run, "Stock over time", plots::stock(run))?;
    figure(out, run, "Accepted orders per second", plots::rate(run))?;
    if !run.faults.is_empty() {
        out.push_str(
            "<p class=\"muted\"><span class=\"key\" style=\"background:#d84315\"></span>session of the holder expired\
             <span class=\"key\" style=\"background:#8e24aa\"></span>holder frozen\
             <span class=\"key\" style=\"background:#00838f\"></span>another fault\
             <span class=\"key\" style=\"background:#bdbdbd\"></span>tried, moment missed</p>",
        );
    }
    if !run.series.lock_waits_ms.is_empty() {
        figure(out, run, "Lock wait of accepted orders", plots::waits(run))?;
    }
    faults(out, run);
    lost_locks(out, run);
    fenced_writes(out, run);
    findings(out, run);
    links(out, run);
    Ok(())
}

/// Where to look at it, as long as the stack keeps it.
fn links(out: &mut String, run: &RunReport) {
    let Some(links) = &run.links else { return };
    out.push_str("<h3>In the stack's own pages</h3><ul>");
    for (what, link) in links.each() {
        push(out, format_args!("<li><a href=\"{}\">{what}</a></li>", text(link)));
    }
    out.push_str("</ul>");
}

fn figure(out: &mut String, run: &RunReport, title: &str, drawn: plots::Drawn) -> Result<(), WriteError> {
    let svg = drawn.map_err(|error| WriteError::Plot { run: run.name.clone(), reason: error.to_string() })?;
    push(out, format_args!("<h3>{title}</h3>{svg}"));
    Ok(())
}

fn faults(out: &mut String, run: &RunReport) {
    if run.faults.is_empty() {
        return;
    }
    out.push_str("<h3>Faults and recovery</h3>");
    let rows = run.faults.iter().map(|fault| {
        vec![
            Cell::Number(format!("{:.2}", fault.at_s)),
            Cell::Word(fault.kind.clone()),
            Cell::Word(fault.instance.clone()),
            Cell::number(fault.token),
            Cell::Word(fault.session.clone()),
            Cell::Word(if fault.confirmed { "confirmed" } else { "missed" }.into()),
            Cell::Number(fault.recovery_ms.map_or_else(|| "–".into(), |ms| format!("{ms:.0}"))),
            Cell::Word(fault.evidence.clone()),
        ]
    });
    rows_of(out, &["s", "fault", "instance", "token", "session", "", "recovery ms", "evidence"], rows);
}

fn lost_locks(out: &mut String, run: &RunReport) {
    if run.lost_locks.is_empty() {
        return;
    }
    out.push_str("<h3>Locks lost while held</h3>");
    let rows = run.lost_locks.iter().map(|lost| {
        vec![
            Cell::Number(format!("{:.2}", lost.at_s)),
            Cell::Word(lost.instance.clone()),
            Cell::optional(lost.token),
            Cell::Word(lost.reason.clone()),
        ]
    });
    rows_of(out, &["s", "instance", "token", "reason"], rows);
}

fn findings(out: &mut String, run: &RunReport) {
    if run.audit.findings.is_empty() {
        return;
    }
    let (shown, omitted) = (run.audit.findings.len(), run.audit.findings_omitted);
    push(
        out,
        format_args!("<details><summary>Findings of the audit: {shown}, {omitted} more omitted</summary>"),
    );
    let rows = run.audit.findings.iter().map(|finding| {
        vec![
            Cell::Word(finding.invariant.to_string()),
            Cell::Word(finding.subject.clone()),
            Cell::Word(finding.text.clone()),
        ]
    });
    rows_of(out, &["", "about", "finding"], rows);
    out.push_str("</details>");
}

fn fenced_writes(out: &mut String, run: &RunReport) {
    if run.fenced_writes.is_empty() {
        return;
    }
    out.push_str("<h3>Writes the fence refused</h3>");
    let rows = run.fenced_writes.iter().map(|write| {
        vec![
            Cell::Number(format!("{:.2}", write.at_s)),
            Cell::Word(write.instance.clone()),
            Cell::optional(write.token),
            Cell::optional(write.fence),
        ]
    });
    rows_of(out, &["s", "instance", "token", "fence"], rows);
}

/// What a cell holds, and so how it is set.
enum Cell {
    Word(String),
    Number(String),
    /// Markup of ours.
    Markup(String),
}

impl Cell {
    fn number(value: impl std::fmt::Display) -> Self {
        Self::Number(value.to_string())
    }

    fn optional(value: Option<i64>) -> Self {
        value.map_or_else(|| Self::Number("–".into()), Self::number)
    }
}

fn rows_of(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<Cell>>) {
    out.push_str("<table><tr>");
    for name in head {
        push(out, format_args!("<th>{name}</th>"));
    }
    out.push_str("</tr>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            match cell {
                Cell::Word(word) => push(out, format_args!("<td>{}</td>", text(&word))),
                Cell::Number(number) => push(out, format_args!("<td class=\"n\">{number}</td>")),
                Cell::Markup(markup) => push(out, format_args!("<td>{markup}</td>")),
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
}

fn verdict(run: &RunReport) -> String {
    let mark = if run.as_expected { "ok" } else { "no" };
    format!("<b class=\"v {} {mark}\">{}</b>", run.claim(), table::verdict(run))
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    if out.write_fmt(what).is_err() {
        unreachable!("writing to a String does not fail");
    }
}

/// Text made safe for a page.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::report::sample;

    #[test]
    fn the_page_loads_nothing_and_escapes_names() {
        let html = page(&sample::report()).expect("drawn");
        for forbidden in ["http://", "https://", "<script", "<link", "src=", "@import", "url("] {
            assert!(!html.contains(forbidden), "the page contains {forbidden}");
        }
        assert!(html.contains("order-&lt;2&gt;") && !html.contains("order-<2>"));
        assert_eq!(html.matches("<svg").count(), 5, "two plots of a run without locks, three with");
        for part in
            ["Stock over time", "Accepted orders per second", "Lock wait", "Locks lost", "fence refused"]
        {
            assert!(html.contains(part), "{part}");
        }
    }
}
