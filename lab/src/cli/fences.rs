//! `fences`: rows that refuse every write because ZooKeeper's tokens start low again, and their reset.

use lab::fences::{self, Fence};
use lab::report::table;
use lab::verdict::Exit;
use serde::Serialize;
use zk_locks::Inspector;

use super::Context;
use super::args::FencesArgs;
use super::outcome::Outcome;
use super::system::System;

#[derive(Serialize)]
struct Document<'a> {
    token_now: i64,
    ahead: &'a [Fence],
    reset: bool,
}

pub(crate) async fn fences(context: &Context, args: &FencesArgs) -> Outcome {
    let system = System::of(&args.system)?;
    let inspector = Inspector::connect(&system.zookeeper).await?;
    let token_now = inspector.token_now().await?;
    inspector.close().await;
    let database = system.database().await?;
    let ahead = if args.reset {
        fences::reset(token_now, &database).await?
    } else {
        fences::ahead_of(token_now, &database).await?
    };
    database.close().await;
    let document = Document { token_now, ahead: &ahead, reset: args.reset };
    context.result(&document, || text(&document))?;
    Ok(if ahead.is_empty() || args.reset { Exit::Valid } else { Exit::Invalid })
}

fn text(document: &Document<'_>) -> String {
    let Document { token_now, ahead, reset } = document;
    if ahead.is_empty() {
        return format!("no fence is ahead of ZooKeeper's tokens, which are at {token_now}");
    }
    let head = ["sku", "fence", "on hand"].map(str::to_owned);
    let rows: Vec<Vec<String>> = ahead
        .iter()
        .map(|row| vec![row.sku.clone(), row.fence.to_string(), row.on_hand.to_string()])
        .collect();
    let said = if *reset {
        format!("were ahead of ZooKeeper's tokens, which are at {token_now}; they are 0 now")
    } else {
        format!(
            "are ahead of ZooKeeper's tokens, which are at {token_now}: every write to these SKUs is refused.\n\
             Was ZooKeeper's data lost? Restore it; if that cannot be, stop the replicas and `lockstock fences --reset`"
        )
    };
    format!("{}\n{said}", table::render(&head, &rows))
}
