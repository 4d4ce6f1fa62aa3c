//! `ostler pause` and `ostler resume`: whether a pool's workers get new work.

use super::args::{PauseArgs, ResumeArgs};
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::order;

pub(super) async fn pause(args: &PauseArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let told = order::give(&mut client, &args.pool, "pause", None).await?;
    told.show(args.json, &format!("{}: paused; {}", args.pool, order::holds(&told.pool)))?;
    Ok(Exit::Ok)
}

pub(super) async fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let told = order::give(&mut client, &args.pool, "resume", None).await?;
    let (state, holds) = (&told.pool.lifecycle, order::holds(&told.pool));
    told.show(args.json, &format!("{}: {state} again; {holds}", args.pool))?;
    Ok(Exit::Ok)
}
