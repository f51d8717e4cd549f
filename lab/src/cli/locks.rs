//! `locks`: who holds and who waits on each path; removes a node whose owner is gone.

use std::time::Duration;

use lab::experiments::LOCKS;
use lab::report::table;
use lab::verdict::Exit;
use serde::Serialize;
use time::OffsetDateTime;
use zk_locks::{Inspector, LockEntry, LockView};

use super::args::LocksArgs;
use super::outcome::{Outcome, Stop};
use super::{Context, system};

const AGAIN: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct Document<'a> {
    locks: &'a [LockView],
}

pub(crate) async fn locks(context: &Context, args: &LocksArgs) -> Outcome {
    let connect = match &args.zookeeper {
        Some(connect) => connect.clone(),
        None => system::running(args.run_dir.as_deref())?.zookeeper.connect,
    };
    if let (Some(node), Some(token)) = (&args.remove, args.token) {
        return remove(context, node, token, &connect).await;
    }
    tokio::select! {
        outcome = show(context, args, &connect) => outcome,
        // Looking on and on is ended by nothing else.
        _ = context.interrupts.first(), if args.watch => Ok(Exit::Valid),
        signal = context.interrupts.first(), if !args.watch => {
            Err(Stop::Signal(signal, super::UNTOUCHED.into()))
        }
    }
}

async fn remove(context: &Context, node: &str, token: i64, connect: &str) -> Outcome {
    let Some((path, name)) =
        node.rsplit_once('/').filter(|(path, name)| path.starts_with('/') && !name.is_empty())
    else {
        return Err(Stop::Usage(format!("--remove {node}: not a path such as /locks/stock:sku-1/<node>")));
    };
    let inspector = Inspector::connect(connect).await?;
    let removed = inspector.remove(path, name, token).await?;
    inspector.close().await;
    context.result(&serde_json::json!({ "node": node, "token": token, "removed": removed }), || {
        if removed {
            format!("removed {node}")
        } else {
            format!("no {node} with token {token}: nothing was removed")
        }
    })?;
    Ok(if removed { Exit::Valid } else { Exit::Invalid })
}

async fn show(context: &Context, args: &LocksArgs, connect: &str) -> Outcome {
    let inspector = Inspector::connect(connect).await?;
    loop {
        let views = inspector.locks(LOCKS).await?;
        let clear = if args.watch && !context.json { "\x1b[2J\x1b[H" } else { "" };
        context.result(&Document { locks: &views }, || format!("{clear}{}", text(&views)))?;
        if !args.watch {
            break;
        }
        tokio::time::sleep(AGAIN).await;
    }
    inspector.close().await;
    Ok(Exit::Valid)
}

fn text(views: &[LockView]) -> String {
    let head = ["lock", "place", "instance", "session", "token", "for", "trace", "node"].map(str::to_owned);
    let now = OffsetDateTime::now_utc();
    let rows: Vec<Vec<String>> =
        views.iter().flat_map(|view| view.entries.iter().map(|entry| row(&view.path, entry, now))).collect();
    let free = views.iter().filter(|view| view.entries.is_empty()).count();
    let free = if free == 0 { String::new() } else { format!("\n{free} more are free") };
    if rows.is_empty() {
        return format!("nobody holds or waits under {LOCKS}{free}");
    }
    format!("{}{free}", table::render(&head, &rows))
}

fn row(path: &str, entry: &LockEntry, now: OffsetDateTime) -> Vec<String> {
    let dash = || "–".to_owned();
    let place =
        if entry.position == 0 { "holds".to_owned() } else { format!("waits, {} ahead", entry.position) };
    vec![
        path.to_owned(),
        place,
        entry.instance.clone().unwrap_or_else(dash),
        format!("{:#x}", entry.session_id),
        entry.token.to_string(),
        format!("{:.3} s", (now - entry.since).as_seconds_f64().max(0.0)),
        entry.traceparent.as_deref().and_then(trace_id).map_or_else(dash, str::to_owned),
        entry.node.clone(),
    ]
}

/// The trace id in a `traceparent`: `00-<trace id>-<span id>-<flags>`.
fn trace_id(traceparent: &str) -> Option<&str> {
    traceparent.split('-').nth(1)
}

#[cfg(test)]
mod tests {
    use super::text;
    use time::{Duration, OffsetDateTime};
    use zk_locks::{LockEntry, LockView};

    #[test]
    fn holders_and_waiters_are_told_apart_with_their_traces() {
        let entry = |position| LockEntry {
            node: "n".into(),
            position,
            token: 41,
            session_id: 0x1f,
            instance: Some("order-1".into()),
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            label: None,
            since: OffsetDateTime::now_utc() - Duration::seconds(2),
        };
        let views = [
            LockView { path: "/locks/stock:a".into(), entries: vec![entry(0), entry(1)] },
            LockView { path: "/locks/stock:b".into(), entries: vec![] },
        ];
        let text = text(&views);
        for part in ["holds", "waits, 1 ahead", "0x1f", "4bf92f3577b34da6a3ce929d0e0e4736", "1 more are free"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
