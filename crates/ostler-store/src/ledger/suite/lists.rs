//! Lists, counts and pages.

use super::super::job::JobFilter;
use super::*;

async fn ids(world: &World, filter: JobFilter) -> Vec<JobId> {
    world.ledger.jobs(&filter, 100).await.unwrap().into_iter().map(|job| job.id).collect()
}

pub(in crate::ledger) async fn lists_show_what_fits_the_youngest_first(world: World) -> World {
    let plain = world.submit(new_job()).await.id;
    let tags = [("team".to_owned(), "a".to_owned()), ("env".to_owned(), "x".to_owned())].into();
    let special = NewJob {
        workspace: "acme".to_owned(),
        queue: "slow".to_owned(),
        pool: "other".to_owned(),
        function: "else".to_owned(),
        tags,
        ..new_job()
    };
    let special = world.submit(special).await.id;
    let child = world.submit(child_of(&plain)).await.id;
    let leaf = world.submit(child_of(&child)).await.id;
    let claimed = world.ledger.claim_job(&leaf).await.unwrap().unwrap();
    world.complete(&claimed).await;
    let none = JobFilter::default;
    let all = [leaf.clone(), child.clone(), special.clone(), plain.clone()];
    assert_eq!(ids(&world, none()).await, all);
    let own = |text: &str| Some(text.to_owned());
    let tag = |value: &str| Some(("team".to_owned(), value.to_owned()));
    let only_special = [
        JobFilter { workspace: own("acme"), ..none() },
        JobFilter { queue: own("slow"), ..none() },
        JobFilter { pool: own("other"), ..none() },
        JobFilter { function: own("else"), ..none() },
        JobFilter { tag: tag("a"), ..none() },
        JobFilter { pool: own("other"), status: Some(JobStatus::Pending), ..none() },
    ];
    for filter in only_special {
        assert_eq!(ids(&world, filter.clone()).await, std::slice::from_ref(&special), "{filter:?}");
    }
    assert_eq!(ids(&world, JobFilter { tag: tag("b"), ..none() }).await, []);
    let children = JobFilter { parent: Some(plain.clone()), ..none() };
    assert_eq!(ids(&world, children).await, std::slice::from_ref(&child));
    let tree = JobFilter { root: Some(plain.clone()), ..none() };
    assert_eq!(ids(&world, tree).await, [leaf.clone(), child.clone(), plain.clone()]);
    let done = JobFilter { status: Some(JobStatus::Completed), ..none() };
    assert_eq!(ids(&world, done).await, [leaf]);
    let older = JobFilter { before: Some(special), ..none() };
    assert_eq!(ids(&world, older).await, [plain]);
    world
}

pub(in crate::ledger) async fn pages_join_without_a_gap(world: World) -> World {
    world.ledger.submit(vec![new_job(); 25], asked()).await.unwrap();
    let mut seen = Vec::new();
    let mut filter = JobFilter { pool: Some("py".to_owned()), ..JobFilter::default() };
    loop {
        let page = world.ledger.jobs(&filter, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id.clone());
        seen.extend(page.into_iter().map(|job| job.id));
    }
    assert_eq!(seen.len(), 25);
    assert!(seen.is_sorted_by(|younger, older| younger > older));
    world
}

pub(in crate::ledger) async fn jobs_are_counted_by_status(world: World) -> World {
    world.ledger.submit(vec![new_job(); 3], asked()).await.unwrap();
    let claimed = world.claim_all().await;
    world.complete(&claimed[0]).await;
    world.fail(&claimed[1]).await;
    world.submit(new_job()).await;
    let counts = world.ledger.counts().await.unwrap();
    let by_status: Vec<(&str, u64)> =
        counts.by_status.iter().map(|(status, count)| (status.name(), *count)).collect();
    assert_eq!(by_status, [("COMPLETED", 1), ("FAILED", 1), ("PENDING", 1), ("RUNNING", 1)]);
    world
}

pub(in crate::ledger) async fn what_does_not_exist_is_not_found(world: World) -> World {
    let nobody = JobId::fresh();
    let error = world.ledger.job(&nobody).await.unwrap_err();
    assert_eq!(error, LedgerError::NoJob { id: nobody.to_string() });
    assert!(world.ledger.attempts(&nobody).await.unwrap().is_empty());
    assert!(world.ledger.events(&nobody, 0, 10).await.unwrap().is_empty());
    assert!(world.trail(&nobody).await.is_empty());
    assert_eq!(world.ledger.worker("w_0").await.unwrap(), None);
    assert_eq!(world.ledger.claim_job(&nobody).await.unwrap(), None);
    world
}
