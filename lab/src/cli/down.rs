//! `down`: stops what `up` left running.

use lab::supervisor::{self, DownError, Home, HomeError};
use lab::verdict::Exit;

use super::Context;
use super::args::HomeArgs;
use super::outcome::Outcome;

pub(crate) async fn down(context: &Context, args: &HomeArgs) -> Outcome {
    let home = Home::find(args.run_dir.as_deref())?;
    let down = match supervisor::down(&home).await {
        Ok(down) => down,
        // Asked to be down, it is down.
        Err(DownError::Home(error @ HomeError::Nothing { .. })) => {
            let document = serde_json::json!({ "stopped": false, "detail": error.to_string() });
            context.result(&document, || error.to_string())?;
            return Ok(Exit::Valid);
        }
        Err(error) => return Err(error.into()),
    };
    let how = if down.killed {
        "it had to be killed; everything it had started was killed with it"
    } else {
        "in order"
    };
    let seconds = down.took.as_secs_f64();
    let document = serde_json::json!({
        "stopped": true, "supervisor_pid": down.pid, "run_dir": down.run_dir, "killed": down.killed,
        "seconds": seconds,
    });
    context.result(&document, || {
        format!(
            "stopped the services, ZooKeeper and PostgreSQL in {seconds:.1} s, {how}; the run folder is kept: {}",
            down.run_dir.display()
        )
    })?;
    Ok(Exit::Valid)
}
