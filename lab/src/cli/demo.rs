//! `demo`: the danger, the cure, and the cure under fire.

use lab::experiments;

use super::Context;
use super::args::DemoArgs;
use super::outcome::Outcome;
use super::series::{Series, conduct};

pub(crate) async fn demo(context: &Context, args: &DemoArgs) -> Outcome {
    let series = Series {
        name: "demo",
        experiments: experiments::demo(),
        seed: args.seed.unwrap_or_else(|| rand::random::<u32>().into()),
        keep_data: args.keep_data,
    };
    conduct(context, series).await
}
