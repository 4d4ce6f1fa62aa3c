//! Real pools of real processes.

#[path = "pool/bounds.rs"]
mod bounds;
#[path = "pool/callbacks.rs"]
mod callbacks;
#[path = "pool/calls.rs"]
mod calls;
#[path = "pool/checkups.rs"]
mod checkups;
#[path = "pool/churn.rs"]
mod churn;
#[path = "pool/control.rs"]
mod control;
#[path = "pool/crashes.rs"]
mod crashes;
#[path = "pool/crowd.rs"]
mod crowd;
#[path = "pool/durable.rs"]
mod durable;
#[path = "pool/embedding.rs"]
mod embedding;
#[path = "pool/ends.rs"]
mod ends;
#[path = "pool/health.rs"]
mod health;
#[path = "pool/keyed.rs"]
mod keyed;
#[path = "pool/leases.rs"]
mod leases;
#[path = "pool/lives.rs"]
mod lives;
#[path = "pool/moving.rs"]
mod moving;
#[path = "pool/nested.rs"]
mod nested;
#[path = "pool/outputs.rs"]
mod outputs;
#[path = "pool/plain.rs"]
mod plain;
#[path = "pool/profiles.rs"]
mod profiles;
#[path = "pool/races.rs"]
mod races;
#[path = "pool/recovery.rs"]
mod recovery;
#[path = "pool/relearning.rs"]
mod relearning;
#[path = "pool/reload.rs"]
mod reload;
#[path = "pool/replay.rs"]
mod replay;
#[path = "pool/requests.rs"]
mod requests;
#[path = "pool/retirement.rs"]
mod retirement;
#[path = "pool/scaling.rs"]
mod scaling;
#[path = "pool/sessions.rs"]
mod sessions;
#[path = "pool/streams.rs"]
mod streams;
#[path = "pool/supervision.rs"]
mod supervision;
#[path = "pool/support.rs"]
mod support;
#[path = "pool/vices.rs"]
mod vices;
#[path = "pool/writing.rs"]
mod writing;

ostler_runtime::enter_before_main!();
