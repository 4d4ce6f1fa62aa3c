//! The server in this process, with real workers and a ledger in memory, as its clients meet it:
//! jobs, supervised workers, keys, and the trail of it all.

ostler_runtime::enter_before_main!();

#[path = "api/jobs.rs"]
mod jobs;
#[path = "api/keys.rs"]
mod keys;
#[path = "api/matrix.rs"]
mod matrix;
#[path = "api/restarts.rs"]
mod restarts;
#[path = "api/schedules.rs"]
mod schedules;
#[path = "api/store.rs"]
mod store;
#[path = "api/stories.rs"]
mod stories;
#[path = "api/support.rs"]
mod support;
#[path = "api/workers.rs"]
mod workers;
