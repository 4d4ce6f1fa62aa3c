//! Jobs on real pools of real processes.

#[path = "jobs/cancelling.rs"]
mod cancelling;
#[path = "jobs/children.rs"]
mod children;
#[path = "jobs/gangs.rs"]
mod gangs;
#[path = "jobs/kept.rs"]
mod kept;
#[path = "jobs/places.rs"]
mod places;
#[path = "jobs/running.rs"]
mod running;
#[path = "jobs/stopping.rs"]
mod stopping;
#[path = "jobs/storm.rs"]
mod storm;
#[path = "jobs/submitting.rs"]
mod submitting;
#[path = "jobs/support.rs"]
mod support;

ostler_runtime::enter_before_main!();
