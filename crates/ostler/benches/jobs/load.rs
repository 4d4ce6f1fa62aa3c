//! A number of jobs from a number of clients, and the wait for their ends.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Failure;
use super::client::{Batch, Client, Job, Page};
use super::server::Server;

/// Between two looks at what is still open. Each costs the server a read.
const LOOK: Duration = Duration::from_millis(5);

/// Jobs that take no time take no longer than this; a server that needs more is stuck.
const SETTLE_MAX: Duration = Duration::from_secs(300);

const OPEN: [&str; 3] = ["SUBMITTED", "PENDING", "RUNNING"];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Tells the jobs of one part from those of another.
    pub queue: &'static str,
    pub jobs: usize,
    pub clients: usize,
    /// Jobs of one request.
    pub batch: usize,
}

/// How long it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub jobs: usize,
    /// Until the last was acknowledged.
    pub submitted: Duration,
    /// Until the last had its end.
    pub done: Duration,
}

impl Load {
    pub async fn run(&self, server: &Server<'_>) -> Result<Run, Failure> {
        let began = Instant::now();
        let mut clients = self.begin(server, &Arc::new(Semaphore::new(0))).await?;
        let mut acknowledged = HashSet::new();
        while let Some(client) = clients.join_next().await {
            let (ids, failure) = client?;
            failure.map_or(Ok(()), Err)?;
            acknowledged.extend(ids);
        }
        let submitted = began.elapsed();
        self.wait_for_the_ends(server).await?;
        let done = began.elapsed();
        let completed = self.completed(server).await?;
        if acknowledged.len() != self.jobs || acknowledged != completed {
            let (told, there) = (acknowledged.len(), completed.len());
            return Err(
                format!("of {} jobs {told} were acknowledged, {there} done", self.jobs).into()
            );
        }
        Ok(Run { jobs: self.jobs, submitted, done })
    }

    /// Begins the run, kills the server when half of it is submitted, and starts it again. What
    /// was acknowledged until then.
    pub async fn cut_short(&self, server: &mut Server<'_>) -> Result<Vec<String>, Failure> {
        let told = Arc::new(Semaphore::new(0));
        let mut clients = self.begin(server, &told).await?;
        let half = u32::try_from(self.jobs / 2)?;
        let _half =
            timeout(SETTLE_MAX, told.acquire_many(half)).await.map_err(|_| "nothing moves")??;
        server.kill_and_start().await?;
        let mut acknowledged = Vec::new();
        while let Some(client) = clients.join_next().await {
            // Those who were in the middle of something were not told anything.
            let (ids, _) = client?;
            acknowledged.extend(ids);
        }
        Ok(acknowledged)
    }

    /// Every job of this load that is completed once nothing is open.
    pub async fn settle(&self, server: &Server<'_>) -> Result<HashSet<String>, Failure> {
        self.wait_for_the_ends(server).await?;
        self.completed(server).await
    }

    /// `told` gets a permit for every job that is acknowledged.
    async fn begin(
        &self,
        server: &Server<'_>,
        told: &Arc<Semaphore>,
    ) -> Result<JoinSet<(Vec<String>, Option<Failure>)>, Failure> {
        let mut clients = JoinSet::new();
        for number in 0..self.clients {
            let client = Client::connect(server.address()).await?;
            let share = self.jobs * number / self.clients..self.jobs * (number + 1) / self.clients;
            clients.spawn(submit(*self, client, share, Arc::clone(told)));
        }
        Ok(clients)
    }

    async fn wait_for_the_ends(&self, server: &Server<'_>) -> Result<(), Failure> {
        let mut client = Client::connect(server.address()).await?;
        let began = Instant::now();
        // In the order of their lives, so that none slips past.
        for status in OPEN {
            let list = format!("{}&limit=1", self.list(status));
            while !client.get::<Page>(&list).await?.items.is_empty() {
                if began.elapsed() > SETTLE_MAX {
                    return Err(format!("some jobs stay {status}").into());
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    async fn completed(&self, server: &Server<'_>) -> Result<HashSet<String>, Failure> {
        let mut client = Client::connect(server.address()).await?;
        Ok(client.ids(&self.list("COMPLETED")).await?.into_iter().collect())
    }

    fn list(&self, status: &str) -> String {
        format!("/api/jobs?queue={}&status={status}", self.queue)
    }

    fn order(&self, number: usize) -> String {
        format!(
            r#"{{"pool":"work","function":"nothing","payload":[{number}],"queue":"{}"}}"#,
            self.queue
        )
    }
}

/// What was acknowledged, and what broke it off.
async fn submit(
    load: Load,
    mut client: Client,
    share: Range<usize>,
    told: Arc<Semaphore>,
) -> (Vec<String>, Option<Failure>) {
    let mut ids = Vec::new();
    let numbers: Vec<usize> = share.collect();
    for part in numbers.chunks(load.batch) {
        match send(&load, &mut client, part).await {
            Ok(jobs) => {
                told.add_permits(jobs.len());
                ids.extend(jobs.into_iter().map(|job| job.id));
            }
            Err(failure) => return (ids, Some(failure)),
        }
    }
    (ids, None)
}

async fn send(load: &Load, client: &mut Client, numbers: &[usize]) -> Result<Vec<Job>, Failure> {
    if let [number] = numbers {
        return Ok(vec![client.post("/api/jobs", load.order(*number)).await?]);
    }
    let orders: Vec<String> = numbers.iter().map(|number| load.order(*number)).collect();
    let body = format!(r#"{{"jobs":[{}]}}"#, orders.join(","));
    Ok(client.post::<Batch>("/api/jobs/batch", body).await?.jobs)
}
