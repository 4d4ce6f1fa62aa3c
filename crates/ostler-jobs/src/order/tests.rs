use super::*;

fn duty(job: &JobId, shard: u32) -> Duty {
    Duty { job: job.as_str().into(), attempt: 1, shard, shard_count: 2, depth: 0 }
}

fn read_text(text: &str, duty: Option<&Duty>) -> Result<NewJob, String> {
    read(&Body::json(text.to_owned()), duty)
}

fn key(text: &str, duty: &Duty) -> String {
    read_text(text, Some(duty)).expect("it is read").child_key.expect("it has one")
}

#[test]
fn what_is_not_said_is_as_usual() {
    let job = read_text(r#"{"function":"f"}"#, None).expect("it is read");
    assert_eq!(job, NewJob::new("", "f", Content::new("application/json", "")));
    let null = read_text(r#"{"function":"f","payload":null}"#, None).expect("it is read");
    assert_eq!(&null.payload.bytes[..], b"null", "one argument is not none");
}

#[test]
fn every_field_is_understood() {
    let text = r#"{"function":"f","pool":"p","payload":{"a":1},"worker_count":2,"depth":1,
        "priority":-3,"run_at":"2030-01-01T00:00:00Z","timeout":"5m","max_attempts":7,
        "backoff":{"initial":0.5,"max":"2s","factor":3},"retry_on":["error"],"session":"s",
        "tags":{"k":"v"},"workspace_id":"w","queue":"q","children":"ignore","unique_key":"u",
        "concurrency_key":"c","concurrency_limit":4,"task_description":"t"}"#;
    let job = read_text(text, None).expect("it is read");
    assert_eq!((&*job.pool, &*job.workspace, &*job.queue), ("p", "w", "q"));
    assert_eq!(&job.payload.bytes[..], br#"{"a":1}"#);
    assert_eq!((job.worker_count, job.depth, job.priority), (2, Some(1), -3));
    assert_eq!(job.timeout, Some(Duration::from_secs(300)));
    assert_eq!((job.retrying.max_attempts, job.retrying.on_error), (7, true));
    assert_eq!(job.retrying.backoff.initial, Duration::from_millis(500));
    assert_eq!(job.retrying.backoff.max, Duration::from_secs(2));
    assert_eq!(job.children, Children::Ignore);
    assert_eq!(job.concurrency_limit, 4);
    assert_eq!(job.tags["k"], "v");
    assert!(job.run_at.is_some() && job.session.is_some() && job.unique_key.is_some());
    assert!(job.concurrency_key.is_some() && job.task_description.is_some());
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    for (text, name) in [
        ("[]", "job.submit"),
        (r#"{"pool":"p"}"#, "function"),
        (r#"{"function":"f","fuction":1}"#, "fuction"),
        (r#"{"function":"f","timeout":0}"#, "timeout"),
        (r#"{"function":"f","timeout":"1 year"}"#, "timeout"),
        (r#"{"function":"f","timeout":-1}"#, "timeout"),
        (r#"{"function":"f","backoff":{"initial":2,"max":1}}"#, "backoff.initial"),
        (r#"{"function":"f","backoff":{"factor":0}}"#, "backoff.factor"),
        (r#"{"function":"f","parent_job_id":"j_1"}"#, "j_1"),
    ] {
        let error = read_text(text, None).expect_err(text);
        assert!(error.contains(name), "{text}: {error}");
    }
}

#[test]
fn the_job_that_asks_is_the_parent_unless_another_one_or_none_is_named() {
    let (mine, other) = (JobId::fresh(), JobId::fresh());
    let duty = duty(&mine, 0);
    let parent = |text: &str| read_text(text, Some(&duty)).expect("it is read").parent;
    assert_eq!(parent(r#"{"function":"f"}"#), Some(mine.clone()));
    assert_eq!(parent(r#"{"function":"f","parent_job_id":null}"#), None);
    let named = format!(r#"{{"function":"f","parent_job_id":"{other}"}}"#);
    assert_eq!(parent(&named), Some(other));
}

#[test]
fn a_child_is_known_by_all_but_its_time() {
    let parent = JobId::fresh();
    let duty = duty(&parent, 0);
    let first = key(r#"{"function":"f","payload":[1],"occurrence":1}"#, &duty);
    let same = [
        r#"{"occurrence":1,"payload":[1],"function":"f"}"#,
        r#"{"function":"f","payload":[1],"occurrence":1,"run_at":"2030-01-01T00:00:00Z"}"#,
    ];
    for text in same {
        assert_eq!(key(text, &duty), first, "{text}");
    }
    let others = [
        r#"{"function":"f","payload":[1],"occurrence":2}"#,
        r#"{"function":"f","payload":[2],"occurrence":1}"#,
        r#"{"function":"g","payload":[1],"occurrence":1}"#,
        r#"{"function":"f","payload":[1],"occurrence":1,"priority":1}"#,
    ];
    for text in others {
        assert_ne!(key(text, &duty), first, "{text}");
    }
}

#[test]
fn children_that_differ_only_in_a_large_number_are_two() {
    let parent = JobId::fresh();
    let duty = duty(&parent, 0);
    let of = |number: &str| {
        key(&format!(r#"{{"function":"f","payload":[{number}],"occurrence":1}}"#), &duty)
    };
    assert_ne!(of("1180591620717411303424"), of("1180591620717411303425"));
}

#[test]
fn no_payload_is_too_large_or_too_deep_to_be_known_again() {
    let parent = JobId::fresh();
    let duty = duty(&parent, 0);
    let deep = "[".repeat(200) + &"]".repeat(200);
    for payload in ["9".repeat(400), deep] {
        let text = format!(r#"{{"function":"f","payload":{payload},"occurrence":1}}"#);
        let job = read_text(&text, Some(&duty)).expect("it is read");
        assert_eq!(job.payload.bytes, payload.as_bytes());
        assert!(job.child_key.is_some());
    }
}

#[test]
fn shards_and_jobs_have_children_of_their_own() {
    let (parent, other) = (JobId::fresh(), JobId::fresh());
    let text = r#"{"function":"f","occurrence":1}"#;
    let first = key(text, &duty(&parent, 0));
    assert_ne!(key(text, &duty(&parent, 1)), first);
    assert_ne!(key(text, &duty(&other, 0)), first);
}

#[test]
fn without_a_count_or_a_parent_every_submission_is_new() {
    let parent = JobId::fresh();
    let duty = duty(&parent, 0);
    for text in [r#"{"function":"f"}"#, r#"{"function":"f","occurrence":1,"parent_job_id":null}"#] {
        assert_eq!(read_text(text, Some(&duty)).expect("it is read").child_key, None, "{text}");
    }
    let outside = read_text(r#"{"function":"f","occurrence":1}"#, None).expect("it is read");
    assert_eq!(outside.child_key, None);
}

#[test]
fn a_payload_may_be_bytes() {
    let text = r#"{"function":"f","payload":{"$bytes":"AP8=","contentType":"image/png"}}"#;
    let payload = read_text(text, None).expect("it is read").payload;
    assert_eq!((&*payload.content_type, &payload.bytes[..]), ("image/png", &[0u8, 255][..]));
    let object = r#"{"function":"f","payload":{"$bytes":"AP8=","more":1}}"#;
    let payload = read_text(object, None).expect("it is read").payload;
    assert_eq!(&*payload.content_type, "application/json");
}
