//! One attempt of a job: its calls, one for each shard, what they say on the way, and the end that
//! comes of them all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ostler_core::AttemptFailure;
use ostler_runtime::{
    Body, Call, CallError, CallSession, Duty, Failure, Item, Lease, Pool, Running,
};
use ostler_store::ledger::job::{AttemptEnd, Saying};
use serde_json::Value;
use tokio::sync::watch;

use crate::body::{self, Gathered};
use crate::office::{Office, Stage};
use crate::outcome::Outcome;
use crate::roll::Charge;
use crate::story::{Scribe, Story};

/// The calls of a job that has no deadline have one all the same.
const FAR: Duration = Duration::from_secs(30 * 24 * 3600);
/// The timeout of a job is the ledger's to tell; its calls time out only if it does not.
const SLACK: Duration = Duration::from_secs(5);
/// How long a call waits on a place of its own. Only a pause keeps it there: others may have it
/// then, and the job is not running.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where an attempt runs.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// One place for each shard.
    Leased(&'a Pool, &'a Lease),
    /// Wherever its session or its key leads it.
    Pool(&'a Pool),
}

/// What an attempt came to.
#[derive(Debug)]
pub(crate) struct Ending {
    pub end: AttemptEnd,
    /// Said and not stored yet. Stored before the end.
    pub said: Vec<Saying>,
    pub time: Duration,
}

impl Ending {
    /// Nothing ran and nothing was said.
    pub fn unbegun() -> Ending {
        Ending { end: AttemptEnd::Released, said: Vec::new(), time: Duration::ZERO }
    }
}

/// Runs it to its end. Once the office hurries, whatever still runs is given up.
pub(crate) async fn run(charge: &Charge, place: Place<'_>, office: &Office) -> Ending {
    let begun = Instant::now();
    let session = match unless_given_up(charge, office, enter(charge, &place)).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => {
            return Ending { end: ended(Outcome::of(Err(error))), ..Ending::unbegun() };
        }
        Err(end) => return Ending { end, ..Ending::unbegun() },
    };
    let attempt = Attempt {
        charge,
        place,
        session,
        story: Arc::default(),
        stage: office.stage.subscribe(),
        result_max: office.settings.result_max,
    };
    let calls = async {
        let end = attempt.end().await;
        attempt.story.close();
        end
    };
    let (end, ()) =
        tokio::join!(calls, attempt.story.keep(&office.ledger, charge.id(), charge.fence()));
    Ending { end, said: attempt.story.rest(), time: begun.elapsed() }
}

/// The session that a job belongs to, as its pool knows it.
async fn enter(charge: &Charge, place: &Place<'_>) -> Result<Option<CallSession>, CallError> {
    match (&charge.job().spec.session, place) {
        (Some(session), Place::Pool(pool)) => pool.enter(session, None).await.map(Some),
        (Some(_), Place::Leased(..)) | (None, _) => Ok(None),
    }
}

/// What comes of something that is done before anything runs; or the end, if that comes first.
async fn unless_given_up<T>(
    charge: &Charge,
    office: &Office,
    work: impl Future<Output = T>,
) -> Result<T, AttemptEnd> {
    tokio::select! {
        biased;
        () = given_up(charge, office.stage.subscribe()) => {
            Err(if charge.is_called_off() { AttemptEnd::Canceled } else { AttemptEnd::Released })
        }
        done = work => Ok(done),
    }
}

/// By whoever cancels the job, or by the end of the server.
async fn given_up(charge: &Charge, mut stage: watch::Receiver<Stage>) {
    tokio::select! {
        () = charge.called_off() => {}
        _ = stage.wait_for(|stage| *stage == Stage::Hurrying) => {}
    }
}

struct Attempt<'a> {
    charge: &'a Charge,
    place: Place<'a>,
    session: Option<CallSession>,
    story: Arc<Story>,
    stage: watch::Receiver<Stage>,
    result_max: u64,
}

impl Attempt<'_> {
    async fn end(&self) -> AttemptEnd {
        let (stop, _) = watch::channel(false);
        let count = self.charge.job().spec.worker_count;
        let outcomes = self.shards(count, &stop).await;
        if self.charge.is_called_off() {
            return AttemptEnd::Canceled;
        }
        let hurried = *self.stage.borrow() == Stage::Hurrying;
        combined(outcomes, hurried, count)
    }

    /// In the order in which they ended. The first that does not complete stops the others.
    async fn shards(&self, count: u32, stop: &watch::Sender<bool>) -> Vec<(u32, Outcome)> {
        let mut running: Vec<_> = (0..count)
            .map(|shard| Some((shard, Box::pin(self.shard(shard, count, stop.subscribe())))))
            .collect();
        let mut outcomes = Vec::with_capacity(running.len());
        while outcomes.len() < running.len() {
            let (shard, outcome) = first_of(&mut running).await;
            if !matches!(outcome, Outcome::Completed(_)) {
                stop.send_replace(true);
            }
            outcomes.push((shard, outcome));
        }
        outcomes
    }

    async fn shard(&self, shard: u32, count: u32, mut stop: watch::Receiver<bool>) -> Outcome {
        let mut running = self.call(shard, count);
        let mut gathered = Gathered::default();
        let mut stopped = None;
        let mut patience = std::pin::pin!(self.out_of_patience());
        loop {
            let item = tokio::select! {
                biased;
                () = self.told_to_stop(&mut stop), if stopped.is_none() => {
                    stopped = Some(Stop::Told);
                    running.cancel();
                    continue;
                }
                () = &mut patience, if stopped.is_none() && running.worker().is_none() => {
                    // It may have begun while nobody looked.
                    if running.worker().is_none() {
                        stopped = Some(Stop::Impatient);
                        running.cancel();
                    }
                    continue;
                }
                item = running.next() => item,
            };
            match item {
                Item::Chunk(chunk) => {
                    if stopped.is_none() {
                        self.tell(&chunk, &mut stop).await;
                    }
                    gathered.push(&chunk);
                    if gathered.len() as u64 > self.result_max {
                        let limit = self.result_max;
                        return Outcome::of(Err(Failure::ResultTooLarge { limit }.into()));
                    }
                }
                Item::End(end) => {
                    let end = end.map(|result| gathered.finish(result, self.yields()));
                    return ended_after(stopped, Outcome::of(end));
                }
            }
        }
    }

    /// On a place of its own a call begins at once, or the place is out of service.
    async fn out_of_patience(&self) {
        match self.place {
            Place::Leased(..) => tokio::time::sleep(PATIENCE).await,
            // The pool's own queue has its own patience.
            Place::Pool(_) => std::future::pending().await,
        }
    }

    /// Whether its function is one that yields, as far as that is known.
    fn yields(&self) -> bool {
        let (Place::Leased(pool, _) | Place::Pool(pool)) = self.place;
        let function = &self.charge.job().spec.function;
        pool.functions().iter().any(|known| known.name == *function && known.streaming)
    }

    /// Waits for room, so that a worker yields no faster than the store takes it.
    async fn tell(&self, chunk: &Body, stop: &mut watch::Receiver<bool>) {
        let text = chunk.to_json();
        let value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        tokio::select! {
            () = self.story.room() => self.story.message(value, text.len()),
            () = self.told_to_stop(stop) => {}
        }
    }

    /// All of it is given up, or another shard has failed.
    async fn told_to_stop(&self, stop: &mut watch::Receiver<bool>) {
        tokio::select! {
            () = given_up(self.charge, self.stage.clone()) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    fn call(&self, shard: u32, shard_count: u32) -> Running {
        let (charge, job) = (self.charge, self.charge.job());
        let spec = &job.spec;
        let duty = Duty {
            job: job.id.as_str().into(),
            attempt: charge.attempt(),
            shard,
            shard_count,
            depth: job.depth,
        };
        let call = Call {
            function: spec.function.clone(),
            body: body::to_body(&spec.payload),
            timeout: Some(time_left(job.deadline)),
            stream: true,
            priority: spec.priority,
            request_id: Some(format!("{}.{}.{shard}", job.id, charge.fence())),
            traceparent: spec.traceparent.clone(),
            session: self.session.clone(),
            workspace: Some(spec.workspace.clone()),
            duty: Some(Arc::new(duty)),
            listener: Some(Arc::new(Scribe { story: Arc::clone(&self.story), shard })),
            ..Call::default()
        };
        match self.place {
            Place::Leased(_, lease) => lease.call_on(shard, call),
            Place::Pool(pool) => pool.call(call),
        }
    }
}

/// Why a shard was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Told,
    /// It had not begun for too long.
    Impatient,
}

/// One that began in the very moment when patience ended did nothing wrong.
fn ended_after(stopped: Option<Stop>, outcome: Outcome) -> Outcome {
    match (stopped, outcome) {
        (Some(Stop::Impatient), Outcome::Stopped { began: true }) => {
            let message = "its worker was out of service for too long and came back too late";
            Outcome::failed(AttemptFailure::Crashed, "worker_not_serving", message)
        }
        (_, outcome) => outcome,
    }
}

/// The first of them to end. It is taken out.
async fn first_of<F: Future<Output = Outcome> + Unpin>(
    running: &mut [Option<(u32, F)>],
) -> (u32, Outcome) {
    std::future::poll_fn(|cx| {
        for slot in running.iter_mut() {
            let Some((shard, future)) = slot else { continue };
            if let std::task::Poll::Ready(outcome) = std::pin::Pin::new(future).poll(cx) {
                let shard = *shard;
                *slot = None;
                return std::task::Poll::Ready((shard, outcome));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

fn time_left(deadline: Option<Timestamp>) -> Duration {
    let Some(deadline) = deadline else { return FAR };
    let left = deadline.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or_default().saturating_add(SLACK).min(FAR)
}

/// The end of an attempt by the ends of its shards, in the order in which they came.
fn combined(mut outcomes: Vec<(u32, Outcome)>, hurried: bool, count: u32) -> AttemptEnd {
    let of = |wanted: fn(&Outcome) -> bool| outcomes.iter().position(|(_, of)| wanted(of));
    let (unfinished, begun) = (of(|outcome| !outcome.completed()), of(Outcome::began));
    let (failed, unbegun) = (of(Outcome::failed_itself), of(|outcome| !outcome.began()));
    match (unfinished, begun) {
        (None, _) => completed(outcomes, count),
        (Some(_), None) => AttemptEnd::Released,
        // Whatever it made of being stopped.
        (Some(_), _) if hurried => {
            let message = "the server stopped before it had ended";
            ended(Outcome::failed(AttemptFailure::Lost, "shutting_down", message))
        }
        (Some(_), _) => match (failed, unbegun) {
            (Some(first), _) => ended(outcomes.swap_remove(first).1),
            (None, Some(first)) => gang_broken(outcomes.swap_remove(first).1),
            (None, None) => {
                let message = "its request was cancelled, the job was not";
                ended(Outcome::failed(AttemptFailure::Error, "cancelled", message))
            }
        },
    }
}

/// Others had begun when one found that it could not.
fn gang_broken(outcome: Outcome) -> AttemptEnd {
    let failure = AttemptFailure::Crashed;
    match outcome {
        Outcome::Unbegun { error } => AttemptEnd::Failed { failure, error },
        Outcome::Completed(_) | Outcome::Failed { .. } | Outcome::Stopped { .. } => {
            ended(Outcome::failed(failure, "cancelled", "one of its requests never began"))
        }
    }
}

fn completed(mut outcomes: Vec<(u32, Outcome)>, count: u32) -> AttemptEnd {
    outcomes.sort_by_key(|(shard, _)| *shard);
    let results: Vec<Body> = outcomes
        .into_iter()
        .filter_map(|(_, outcome)| match outcome {
            Outcome::Completed(body) => Some(body),
            Outcome::Failed { .. } | Outcome::Unbegun { .. } | Outcome::Stopped { .. } => None,
        })
        .collect();
    AttemptEnd::Completed(match &results[..] {
        [only] if count == 1 => body::to_content(only),
        many => body::list(many),
    })
}

fn ended(outcome: Outcome) -> AttemptEnd {
    match outcome {
        Outcome::Completed(body) => AttemptEnd::Completed(body::to_content(&body)),
        Outcome::Failed { failure, error } => AttemptEnd::Failed { failure, error },
        Outcome::Unbegun { .. } => AttemptEnd::Released,
        Outcome::Stopped { .. } => AttemptEnd::Canceled,
    }
}

#[cfg(test)]
mod tests;
