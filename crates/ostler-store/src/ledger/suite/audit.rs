//! The replay of the trail finds what is wrong with it.

use ostler_core::Status;

use super::super::row::{Row, TransitionRow, WorkerRow};
use super::*;

fn step(id: &str, seq: u64, from: Option<Status>, to: Status) -> Row {
    Row::Transition(TransitionRow {
        entity: Entity::Worker,
        id: id.to_owned(),
        seq,
        from: from.map(|from| from.name().to_owned()),
        to: to.name().to_owned(),
        trigger: "test".to_owned(),
        reason: None,
        actor: "test".to_owned(),
        node: "n_1".to_owned(),
        request_id: None,
        at: START,
    })
}

/// Dedicated: no server ends it.
fn row(id: &str, status: Status, seq: u64, finished_at: Option<i64>) -> Row {
    Row::Worker(WorkerRow {
        id: id.to_owned(),
        name: id.to_owned(),
        pool: "py".to_owned(),
        workspace: "default".to_owned(),
        dedicated: true,
        node: "n_1".to_owned(),
        status,
        seq,
        created_at: START,
        updated_at: START,
        finished_at,
    })
}

/// Past the rules, as nobody should.
async fn write(world: &mut World, rows: Vec<Row>) {
    world.ledger.end().await;
    let mut backend = world.ground.open().await;
    backend.begin().await.unwrap();
    backend.write(rows).await.unwrap();
    backend.commit().await.unwrap();
    backend.close().await;
    (world.ledger, world.told) = start(&*world.ground, &world.settings, &world.clock).await;
}

pub(in crate::ledger) async fn a_trail_that_is_not_whole_is_found(mut world: World) -> World {
    use Status::{Completed, Idle, Paused, Running};
    let cases = [
        (
            "w_gap",
            vec![
                step("w_gap", 1, None, Idle),
                step("w_gap", 3, Some(Running), Paused),
                row("w_gap", Paused, 3, None),
            ],
            "seq 2 is missing",
        ),
        (
            "w_illegal",
            vec![
                step("w_illegal", 1, None, Idle),
                step("w_illegal", 2, Some(Idle), Completed),
                row("w_illegal", Completed, 2, Some(START)),
            ],
            "IDLE to COMPLETED is not allowed (seq 2)",
        ),
        (
            "w_jump",
            vec![
                step("w_jump", 1, None, Idle),
                step("w_jump", 2, Some(Running), Paused),
                row("w_jump", Paused, 2, None),
            ],
            "seq 2 goes from RUNNING, but it was IDLE",
        ),
        (
            "w_other",
            vec![step("w_other", 1, None, Idle), row("w_other", Running, 1, None)],
            "its row says RUNNING, its trail IDLE",
        ),
        ("w_rowless", vec![step("w_rowless", 1, None, Idle)], "there is no row for its trail"),
        (
            "w_short",
            vec![step("w_short", 1, None, Idle), row("w_short", Idle, 2, None)],
            "its row counts 2 transitions, its trail 1",
        ),
    ];
    world.submit(new_job()).await;
    let rows = cases.iter().flat_map(|(_, rows, _)| rows.clone()).collect();
    write(&mut world, rows).await;
    let report = world.ledger.verify().await.unwrap();
    assert_eq!((report.jobs, report.workers, report.transitions), (1, 6, 11));
    let found: Vec<(&str, &str)> =
        report.findings.iter().map(|one| (one.id.as_str(), one.what.as_str())).collect();
    assert_eq!(found, cases.each_ref().map(|(id, _, what)| (*id, *what)));
    assert_eq!(report.findings_total, 6);
    let pruned = cases.iter().map(|(id, ..)| Row::PruneWorker((*id).to_owned())).collect();
    write(&mut world, pruned).await;
    world
}

pub(in crate::ledger) async fn what_changes_meanwhile_is_not_called_wrong(world: World) -> World {
    let ledger = world.ledger.clone();
    let work = tokio::spawn(async move {
        for _ in 0..60 {
            ledger.submit(vec![new_job(); 3], asked()).await.unwrap();
            for claimed in ledger.claim("py", 3).await.unwrap() {
                ledger.finish(&claimed.job.id, claimed.fence, done()).await.unwrap();
            }
        }
    });
    while !work.is_finished() {
        world.verified().await;
    }
    work.await.unwrap();
    let report = world.ledger.verify().await.unwrap();
    assert_eq!((report.jobs, report.transitions), (180, 720));
    world
}
