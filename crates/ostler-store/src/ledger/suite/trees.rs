//! Parents and children.

use super::super::job::Children;
use super::*;

async fn claim_of(world: &World, id: &JobId) -> Claimed {
    world.ledger.claim_job(id).await.unwrap().expect("it may be claimed")
}

pub(in crate::ledger) async fn a_parent_ends_when_its_children_have(world: World) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let first = world.submit_claimed(child_of(&parent.job.id)).await;
    let second = world.submit_claimed(child_of(&parent.job.id)).await;
    let waiting = world.complete(&parent).await;
    assert_eq!((waiting.status, waiting.waiting), (JobStatus::Running, true));
    assert_eq!((waiting.open_children, waiting.result), (2, None));
    assert!(world.claim_all().await.is_empty(), "it holds no worker and needs none");
    world.complete(&first).await;
    assert_eq!(world.status(&parent.job.id).await, JobStatus::Running);
    world.complete(&second).await;
    let ended = world.job(&parent.job.id).await;
    assert_eq!((ended.status, ended.waiting), (JobStatus::Completed, false));
    assert_eq!(ended.result, Some(content("42")));
    world
}

pub(in crate::ledger) async fn a_parent_whose_children_ended_before_it_just_ends(
    world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let child = world.submit_claimed(child_of(&parent.job.id)).await;
    world.complete(&child).await;
    assert_eq!(world.complete(&parent).await.status, JobStatus::Completed);
    world
}

pub(in crate::ledger) async fn a_failed_child_fails_the_waiting_parent_and_its_siblings(
    world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let id = &parent.job.id;
    let bad = world.submit_claimed(child_of(id)).await;
    let busy = world.submit_claimed(child_of(id)).await;
    let idle = world.submit(child_of(id)).await;
    world.complete(&parent).await;
    world.told();
    world.fail(&bad).await;
    let idle = world.job(&idle.id).await;
    assert_eq!(
        (idle.status, idle.reason.as_deref()),
        (JobStatus::Canceled, Some("sibling_failed"))
    );
    let (job, fence, reason) = (busy.job.id.clone(), busy.fence, "sibling_failed".to_owned());
    assert!(world.told().contains(&Notice::CancelAsked { job, fence, reason }));
    assert_eq!(world.status(id).await, JobStatus::Running, "one still works");
    world.finish(&busy, AttemptEnd::Canceled).await;
    let ended = world.job(id).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Failed, Some("child_failed")));
    let told = ended.error.unwrap();
    assert_eq!(told["code"], "child_failed");
    assert_eq!(told["job_id"], bad.job.id.as_str());
    world
}

pub(in crate::ledger) async fn a_parent_that_works_on_is_judged_when_it_returns(
    world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let child = world.submit_claimed(child_of(&parent.job.id)).await;
    world.cancel(&child.job.id).await;
    world.finish(&child, AttemptEnd::Canceled).await;
    assert_eq!(world.status(&parent.job.id).await, JobStatus::Running);
    let ended = world.complete(&parent).await;
    assert_eq!((ended.status, ended.reason.as_deref()), (JobStatus::Failed, Some("child_failed")));
    assert_eq!(ended.result, None);
    world
}

pub(in crate::ledger) async fn a_parent_that_ignores_its_children_ends_without_them(
    world: World,
) -> World {
    let ignoring = || NewJob { children: Children::Ignore, ..new_job() };
    let parent = world.submit_claimed(ignoring()).await;
    let child = world.submit_claimed(child_of(&parent.job.id)).await;
    let ended = world.complete(&parent).await;
    assert_eq!((ended.status, ended.open_children), (JobStatus::Completed, 1));
    world.fail(&child).await;
    let after = world.job(&parent.job.id).await;
    assert_eq!((after.status, after.open_children), (JobStatus::Completed, 0));
    let failing = world.submit_claimed(ignoring()).await;
    let child = world.submit(child_of(&failing.job.id)).await.id;
    world.fail(&failing).await;
    assert_eq!(world.status(&child).await, JobStatus::Pending, "it goes on");
    let canceled = world.submit(ignoring()).await.id;
    let child = world.submit(child_of(&canceled)).await.id;
    assert_eq!(world.cancel(&canceled).await.status, JobStatus::Canceled);
    assert_eq!(world.status(&child).await, JobStatus::Pending);
    world
}

pub(in crate::ledger) async fn a_parent_that_fails_cancels_its_children(world: World) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let idle = world.submit(child_of(&parent.job.id)).await.id;
    let busy = world.submit_claimed(child_of(&parent.job.id)).await;
    world.told();
    assert_eq!(world.fail(&parent).await.status, JobStatus::Failed);
    let idle = world.job(&idle).await;
    assert_eq!((idle.status, idle.reason.as_deref()), (JobStatus::Canceled, Some("parent_failed")));
    let (job, fence, reason) = (busy.job.id.clone(), busy.fence, "parent_failed".to_owned());
    assert!(world.told().contains(&Notice::CancelAsked { job, fence, reason }));
    world.finish(&busy, AttemptEnd::Canceled).await;
    let parent = world.job(&parent.job.id).await;
    assert_eq!((parent.status, parent.open_children), (JobStatus::Failed, 0));
    world
}

/// The root waits; a child is claimed, a child is idle with an idle grandchild.
pub(in crate::ledger) async fn cancel_goes_down_the_tree_the_deepest_first(world: World) -> World {
    let root = world.submit_claimed(new_job()).await;
    let id = &root.job.id;
    let busy = world.submit_claimed(child_of(id)).await;
    let idle = world.submit(child_of(id)).await.id;
    let deep = world.submit(child_of(&idle)).await.id;
    world.complete(&root).await;
    world.told();
    let asked = Asked { reason: Some("enough".to_owned()), ..asked() };
    let flagged = world.ledger.cancel(id, asked).await.unwrap();
    assert_eq!((flagged.status, flagged.open_children), (JobStatus::Running, 1));
    let told = world.told();
    let ends: Vec<&JobId> = told
        .iter()
        .filter_map(|notice| match notice {
            Notice::JobChanged { job, to: JobStatus::Canceled, .. } => Some(job),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [&deep, &idle]);
    for below in [&deep, &idle] {
        let job = world.job(below).await;
        assert_eq!(job.reason.as_deref(), Some("parent_cancelled"));
        let last = world.trail(below).await.pop().unwrap();
        assert_eq!(last.reason.as_deref(), Some("parent_cancelled"));
        assert_eq!(last.actor, "tester");
    }
    let ended = world.complete(&busy).await;
    assert_eq!(ended.status, JobStatus::Canceled, "the flag was first");
    let root = world.job(id).await;
    assert_eq!((root.status, root.reason.as_deref()), (JobStatus::Canceled, Some("cancelled")));
    assert_eq!(world.trail(id).await.pop().unwrap().reason.as_deref(), Some("enough"));
    world
}

pub(in crate::ledger) async fn a_cancelled_parent_that_works_waits_for_its_children(
    world: World,
) -> World {
    let parent = world.submit_claimed(new_job()).await;
    let child = world.submit_claimed(child_of(&parent.job.id)).await;
    world.cancel(&parent.job.id).await;
    let after = world.finish(&parent, AttemptEnd::Canceled).await;
    assert_eq!((after.status, after.waiting), (JobStatus::Running, true));
    world.finish(&child, AttemptEnd::Canceled).await;
    assert_eq!(world.status(&parent.job.id).await, JobStatus::Canceled);
    world
}

pub(in crate::ledger) async fn an_unstarted_parent_ends_after_its_working_child(
    world: World,
) -> World {
    let parent = world.submit(new_job()).await.id;
    let child = world.submit_claimed(child_of(&parent)).await;
    let flagged = world.cancel(&parent).await;
    assert_eq!(flagged.status, JobStatus::Pending);
    assert!(world.claim_all().await.is_empty(), "it does not start any more");
    world.finish(&child, AttemptEnd::Canceled).await;
    assert_eq!(world.path(&parent).await, ["SUBMITTED", "PENDING", "CANCELED"]);
    world
}

pub(in crate::ledger) async fn a_cancelled_child_takes_its_waiting_parent_along(
    world: World,
) -> World {
    let root = world.submit_claimed(new_job()).await;
    let middle = world.submit_claimed(child_of(&root.job.id)).await;
    let leaf = world.submit(child_of(&middle.job.id)).await.id;
    world.complete(&root).await;
    world.complete(&middle).await;
    world.cancel(&leaf).await;
    for id in [&middle.job.id, &root.job.id] {
        let job = world.job(id).await;
        assert_eq!((job.status, job.reason.as_deref()), (JobStatus::Failed, Some("child_failed")));
    }
    world
}

pub(in crate::ledger) async fn a_tree_of_five_levels_ends_from_its_leaves(world: World) -> World {
    let mut ids = vec![world.submit(new_job()).await.id];
    for _ in 0..5 {
        ids.push(world.submit(child_of(ids.last().unwrap())).await.id);
    }
    for id in &ids {
        let claimed = claim_of(&world, id).await;
        world.complete(&claimed).await;
    }
    for id in &ids {
        assert_eq!(world.status(id).await, JobStatus::Completed);
    }
    world
}

pub(in crate::ledger) async fn a_retried_parent_finds_its_children(mut world: World) -> World {
    let keyed = |of: &JobId| NewJob { child_key: Some("k".to_owned()), ..child_of(of) };
    let parent = world.submit_claimed(new_job()).await.job.id;
    let child = world.submit_claimed(keyed(&parent)).await;
    world.complete(&child).await;
    world.crash().await;
    world.clock.pass(HOUR);
    let again = claim_of(&world, &parent).await;
    assert_eq!(again.attempt, 2);
    let found = world.try_submit(keyed(&parent)).await.unwrap();
    assert_eq!((found.known, found.job.id), (true, child.job.id));
    assert_eq!(world.complete(&again).await.status, JobStatus::Completed);
    world
}
