//! A whole run: sets the stock, has goose drive the users, settles what is unknown, closes the history
//! and computes the figures.
//!
//! Promises: ends within the set-up's limit, the duration, one attempt's timeout and the final pass's
//! time; leaves a complete history also when it fails after the set-up.
//! Cost: one goose attack per process at a time, because goose's way to stop is global.

use std::{path::PathBuf, sync::Arc, time::Duration};

use goose::{GooseAttack, client::GooseClientBuilder, config::GooseConfiguration};
use rand::{SeedableRng as _, rngs::Xoshiro256PlusPlus};
use tokio::time::Instant;

use crate::{
    campaign::{Campaign, Ended, Limits, Progress},
    client::{Ask, Attempt, Client},
    history::{self, Closed, Line, Outcome, ReadError, Recorder, WriteError, Writer},
    pursue::{Patience, pursue},
    scenario::{Kind, Plans, scenario},
    settle::settle,
    summary::{About, Summary},
};

/// What to run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Which scenario.
    pub kind: Kind,
    /// Replicas, each `http://host:port`; at least one.
    pub hosts: Vec<String>,
    /// Users at once; at least one. User *n* is at home at host *n* modulo their number.
    pub users: usize,
    /// Units of each SKU, set before the first order.
    pub stock: i64,
    /// No step begins later than this.
    pub duration: Duration,
    /// SKUs; oversell takes the first.
    pub skus: Vec<String>,
    /// Seed of every user's plan.
    pub seed: u64,
    /// Name of the run; part of every key.
    pub run: String,
    /// Where the history goes.
    pub history: PathBuf,
    /// Steps at most.
    pub steps_max: u64,
    /// Orders after the SKU was seen sold out (oversell).
    pub tail: u64,
    /// Units per line at most.
    pub quantity_max: i64,
    /// Attempts per request, the final pass not counted.
    pub attempts_max: u32,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// How long the final pass may begin attempts.
    pub settle: Duration,
}

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The stock could not be set, so nothing was ordered.
    #[error("cannot set the stock of {sku} at {host}: {answer}")]
    SetUp {
        /// Which SKU.
        sku: String,
        /// The last host asked.
        host: String,
        /// What it answered.
        answer: String,
    },
    /// The HTTP client could not be made.
    #[error("cannot make an HTTP client")]
    Client(#[from] reqwest::Error),
    /// The history could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The history could not be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// goose could not run.
    #[error("goose: {0}")]
    Goose(#[from] Box<goose::GooseError>),
}

/// A run that was done.
#[derive(Debug, Clone)]
pub struct Done {
    /// The figures, from the history.
    pub summary: Summary,
    /// Requests by goose's own count; it does not see the set-up and the final pass.
    pub goose_requests: u64,
}

const SET_UP: Duration = Duration::from_secs(15);
const PROGRESS: Duration = Duration::from_secs(1);
/// The final pass after Ctrl-C.
const SETTLE_INTERRUPTED: Duration = Duration::from_secs(3);

/// Does a run; calls `progress` about once a second with the time since its begin.
///
/// # Cancel safety
/// A dropped run leaves requests without a record. Stop it with [`goose::trigger_killswitch`].
pub async fn run(config: &RunConfig, mut progress: impl FnMut(Duration, Progress)) -> Result<Done, RunError> {
    let (recorder, writer) = Writer::create(&config.history)?;
    let driven = drive(config, recorder, &mut progress).await;
    writer.finish().await?;
    let (ended, goose_requests) = driven?;
    let records = history::read(&config.history)?;
    Ok(Done { summary: Summary::of(about(config, ended), &records), goose_requests })
}

async fn drive(
    config: &RunConfig,
    recorder: Recorder,
    progress: &mut impl FnMut(Duration, Progress),
) -> Result<(Ended, u64), RunError> {
    let client = Client::new(&config.run, &config.hosts, config.attempt_timeout, recorder)?;
    if set_stock(config, &client).await?.is_err() {
        return Ok((Ended::History, 0));
    }
    let begun = Instant::now();
    let campaign = Arc::new(Campaign::new(
        client,
        Limits {
            steps_max: config.steps_max,
            tail: (config.kind == Kind::Oversell).then_some(config.tail),
            attempts_max: config.attempts_max,
            deadline: begun + config.duration,
        },
    ));
    let mut ticks = tokio::time::interval(PROGRESS);
    let attack = attack(config, &campaign);
    tokio::pin!(attack);
    let goose_requests = loop {
        tokio::select! {
            done = &mut attack => break done?,
            _ = ticks.tick() => progress(begun.elapsed(), campaign.progress()),
        }
    };
    let ended = campaign.ended().unwrap_or(Ended::Time);
    let settle_time = if ended == Ended::Interrupted { SETTLE_INTERRUPTED } else { config.settle };
    let unsettled = campaign.take_unsettled();
    let settled = settle(campaign.client(), unsettled, settle_time.min(config.settle), config.seed).await;
    progress(begun.elapsed(), campaign.progress());
    Ok((if settled.is_ok() { ended } else { Ended::History }, goose_requests))
}

/// Sets the stock of every SKU that the scenario orders.
async fn set_stock(config: &RunConfig, client: &Client) -> Result<Result<(), Closed>, RunError> {
    let mut jitter = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    for (index, sku) in ordered_skus(config).iter().enumerate() {
        let ask = Ask::Set { key: format!("set-{index}"), line: Line::new(sku, config.stock) };
        let patience = Patience { attempts_max: u32::MAX, until: Instant::now() + SET_UP };
        let first = Attempt { user: 0, host: index, number: 1 };
        let pursuit = match pursue(client, &ask, first, patience, &mut jitter).await {
            Ok(pursuit) => pursuit,
            Err(closed) => return Ok(Err(closed)),
        };
        let last = pursuit.last();
        if last.outcome() != Outcome::Accepted {
            let answer = match (&last.error, &last.code) {
                (Some(error), _) => error.clone(),
                (None, Some(code)) => format!("{} {code}", last.status),
                (None, None) => last.status.to_string(),
            };
            return Err(RunError::SetUp { sku: sku.clone(), host: last.host.clone(), answer });
        }
    }
    Ok(Ok(()))
}

fn ordered_skus(config: &RunConfig) -> &[String] {
    match config.kind {
        Kind::Oversell => &config.skus[..1],
        Kind::Mixed => &config.skus,
    }
}

/// Has goose run the users until the campaign is over; returns goose's own count of requests.
async fn attack(config: &RunConfig, campaign: &Arc<Campaign>) -> Result<u64, RunError> {
    let plans = Arc::new(Plans {
        seed: config.seed,
        run: config.run.clone(),
        skus: ordered_skus(config).to_vec(),
        quantity_max: config.quantity_max,
    });
    // All users at once: the ramp of one user a second is goose's default. The campaign ends the run;
    // goose's own run time is only there in case no user takes another turn.
    let run_time = config.duration.as_secs() + 2;
    let arguments = [
        "--host".to_owned(),
        config.hosts[0].clone(),
        "--users".to_owned(),
        config.users.to_string(),
        "--increase-rate".to_owned(),
        (config.users * 1000).to_string(),
        "--run-time".to_owned(),
        format!("{run_time}s"),
        "--no-reset-metrics".to_owned(),
        "--no-print-metrics".to_owned(),
        "--no-telnet".to_owned(),
        "-qq".to_owned(),
    ];
    let attack = async {
        let configuration = GooseConfiguration::parse_args_default(&arguments)?;
        let attack = GooseAttack::initialize_with_config(configuration)?
            .set_client_builder_without_cookies(GooseClientBuilder::new().without_cookies())?
            .register_scenario(scenario(config.kind, campaign, &plans));
        Box::pin(attack.execute()).await
    };
    let metrics = attack.await.map_err(Box::new)?;
    let requests = metrics.requests.values().map(|of_one| of_one.success_count + of_one.fail_count);
    Ok(requests.sum::<usize>() as u64)
}

fn about(config: &RunConfig, ended: Ended) -> About {
    About {
        run: config.run.clone(),
        scenario: config.kind.as_str().to_owned(),
        seed: config.seed,
        users: config.users,
        hosts: config.hosts.clone(),
        skus: ordered_skus(config).to_vec(),
        stock: config.stock,
        ended,
    }
}
