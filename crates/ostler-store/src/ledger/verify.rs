//! The proof that the trail is whole: every entity is replayed from its first transition, and must
//! arrive at what its row says.

use ostler_core::{JobStatus, Status};

use super::audit::{AuditReport, Entity, Finding};
use super::backend::{Failed, Reads};
use super::id::JobId;
use super::row::TransitionRow;

const PAGE: usize = 500;
const FINDINGS_MAX: usize = 100;
/// Of an entity that changes while it is looked at. A job cannot do so more often than it has
/// transitions, of which there are four.
const TRIES: usize = 5;

/// Those that come after it began are left out: it has an end, however many come.
pub(super) async fn replay(reads: &mut (dyn Reads + Send)) -> Result<AuditReport, Failed> {
    let mut report = AuditReport::default();
    let newest = JobId::fresh();
    for entity in [Entity::Job, Entity::Worker] {
        let mut after = String::new();
        loop {
            let ids = reads.entities(entity, &after, PAGE).await?;
            let Some(last) = ids.last() else { break };
            after.clone_from(last);
            let came_later = |id: &str| entity == Entity::Job && id > newest.as_str();
            for id in ids.iter().take_while(|id| !came_later(id)) {
                replay_one(reads, entity, id, &mut report).await?;
            }
            if came_later(&after) {
                break;
            }
        }
    }
    Ok(report)
}

async fn replay_one(
    reads: &mut (dyn Reads + Send),
    entity: Entity,
    id: &str,
    report: &mut AuditReport,
) -> Result<(), Failed> {
    let mut replay = replay_once(reads, entity, id).await?;
    for _ in 1..TRIES {
        if replay.still {
            break;
        }
        replay = replay_once(reads, entity, id).await?;
    }
    if !replay.still {
        return Ok(());
    }
    match entity {
        Entity::Job => report.jobs += 1,
        Entity::Worker => report.workers += 1,
    }
    report.transitions += replay.transitions;
    report.findings_total += replay.found.len() as u64;
    let room = FINDINGS_MAX.saturating_sub(report.findings.len());
    let told = replay.found.into_iter().take(room);
    report.findings.extend(told.map(|what| Finding { entity, id: id.to_owned(), what }));
    Ok(())
}

struct Replay {
    transitions: u64,
    found: Vec<String>,
    /// It did not change while it was looked at. Else row and trail are of different moments.
    still: bool,
}

async fn replay_once(
    reads: &mut (dyn Reads + Send),
    entity: Entity,
    id: &str,
) -> Result<Replay, Failed> {
    let mut found = Vec::new();
    if let (Entity::Job, Ok(job)) = (entity, id.parse()) {
        // For its checksum.
        intact(reads.result(&job).await, &mut found)?;
    }
    let before = intact(row_of(reads, entity, id).await, &mut found)?;
    let (mut trail, mut transitions) = (Trail::default(), 0);
    while let Some(steps) =
        intact(reads.transitions(entity, id, trail.seq, PAGE).await, &mut found)?
        && !steps.is_empty()
    {
        for step in &steps {
            transitions += 1;
            trail.follow(entity, step, &mut found);
        }
    }
    let after = intact(row_of(reads, entity, id).await, &mut Vec::new())?;
    let gone = matches!(after, Some(None)) && trail.seq == 0;
    let still = before == after && !gone;
    // A row that cannot be read says nothing about the trail.
    if let Some(row) = after {
        compare(row, &trail, &mut found);
    }
    Ok(Replay { transitions, found, still })
}

/// What the row says of the status and of the length of the trail.
#[derive(Debug, PartialEq)]
struct Said {
    status: &'static str,
    seq: u64,
    ended: bool,
    terminal: bool,
}

/// None: there is no row.
async fn row_of(
    reads: &mut (dyn Reads + Send),
    entity: Entity,
    id: &str,
) -> Result<Option<Said>, Failed> {
    Ok(match entity {
        Entity::Job => {
            let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
            reads.job(&id).await?.map(|(_, state)| Said {
                status: state.status.name(),
                seq: state.seq,
                ended: state.completed_at.is_some(),
                terminal: state.status.terminal(),
            })
        }
        Entity::Worker => {
            reads.worker(id).await?.filter(|worker| worker.id == id).map(|worker| Said {
                status: worker.status.name(),
                seq: worker.seq,
                ended: worker.finished_at.is_some(),
                terminal: worker.status.terminal(),
            })
        }
    })
}

/// A damaged row is a finding, not the end of the search.
fn intact<T>(read: Result<T, Failed>, found: &mut Vec<String>) -> Result<Option<T>, Failed> {
    match read {
        Ok(row) => Ok(Some(row)),
        Err(failed) if failed.of_rows => {
            found.push(failed.reason);
            Ok(None)
        }
        Err(failed) => Err(failed),
    }
}

#[derive(Default)]
struct Trail {
    seq: u64,
    status: Option<String>,
}

impl Trail {
    fn follow(&mut self, entity: Entity, step: &TransitionRow, found: &mut Vec<String>) {
        for missing in self.seq + 1..step.seq {
            found.push(format!("seq {missing} is missing"));
        }
        let (seq, to) = (step.seq, &step.to);
        if step.seq == self.seq + 1 && step.from != self.status {
            let (from, was) = (shown(step.from.as_deref()), shown(self.status.as_deref()));
            found.push(format!("seq {seq} goes from {from}, but it was {was}"));
        }
        if !allowed(entity, step.from.as_deref(), to) {
            let from = shown(step.from.as_deref());
            found.push(format!("{from} to {to} is not allowed (seq {seq})"));
        }
        (self.seq, self.status) = (step.seq, Some(to.clone()));
    }
}

fn shown(status: Option<&str>) -> &str {
    status.unwrap_or("nothing")
}

fn allowed(entity: Entity, from: Option<&str>, to: &str) -> bool {
    match (entity, from) {
        (Entity::Job, None) => to == JobStatus::Submitted.name(),
        (Entity::Job, Some(from)) => {
            let step = JobStatus::named(from).zip(JobStatus::named(to));
            step.is_some_and(|(from, to)| from.may_become(to))
        }
        // A worker that a pool started by itself has no IDLE before.
        (Entity::Worker, None) => worker_status(to).is_some(),
        (Entity::Worker, Some(from)) => {
            let step = worker_status(from).zip(worker_status(to));
            step.is_some_and(|(from, to)| from.may_become(to))
        }
    }
}

fn worker_status(name: &str) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status.name() == name)
}

fn compare(row: Option<Said>, trail: &Trail, found: &mut Vec<String>) {
    let Some(row) = row else {
        found.push("there is no row for its trail".to_owned());
        return;
    };
    let status = shown(trail.status.as_deref());
    if row.status != status {
        found.push(format!("its row says {}, its trail {status}", row.status));
    }
    if row.seq != trail.seq {
        found.push(format!("its row counts {} transitions, its trail {}", row.seq, trail.seq));
    }
    if row.ended != row.terminal {
        let end = if row.ended { "has" } else { "has no" };
        found.push(format!("it is {} and {end} time of its end", row.status));
    }
}
