//! Runs the ledger's jobs on the pools.
//!
//! ```text
//!  ledger ──Ready──▶ foreman (one per pool) ──lets in──▶ hand ──lease of one place──▶ pool
//!    ▲                  │ asks its crew                    │
//!    │                  └──claim, as many as have places───┤
//!    │                                                     ▼
//!    ├──────say: progress, messages, lines──── story ◀─ attempt ──calls──▶ worker
//!    └──────finish, until it is taken───────── settle ◀────┘
//!
//!  ledger ──CancelAsked──▶ roll ──▶ attempt lets go ──▶ finish
//! ```
//!
//! A job is claimed when somebody has a place for it, so that RUNNING means running; only where jobs
//! are short are a few fetched ahead. A job of several workers (`gang`) has its places first and is
//! claimed then. Every word about an attempt carries its fence, and its end is offered to the ledger
//! until that takes it or says that it is too late: what is decided about a job is decided there.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use ostler_jobs::{JobSettings, Jobs};
//! use ostler_runtime::{Directory, EVENTS_KEPT, EventLog};
//! use ostler_store::Content;
//! use ostler_store::ledger::{Ledger, LedgerSettings, job::NewJob, key::Asked};
//!
//! # async fn example(directory: Directory) -> Result<(), Box<dyn std::error::Error>> {
//! let ledger = Ledger::in_memory(LedgerSettings::default());
//! let events = Arc::new(EventLog::new(EVENTS_KEPT));
//! // The pools of this directory run the jobs, and their workers may hand in more.
//! let jobs = Jobs::start(ledger, directory, events, JobSettings::default());
//!
//! let job = NewJob::new("py", "resize", Content::new("application/json", r#"{"width":640}"#));
//! let submitted = jobs.submit(vec![job], Asked::by("example")).await?;
//! let job = jobs.wait(&submitted[0].job.id, Duration::from_secs(30)).await?;
//! println!("{} is {}", job.id, job.status.name());
//!
//! jobs.stop(Duration::from_secs(30)).await;
//! # Ok(())
//! # }
//! ```
//!
//! This crate knows no HTTP and no storage, and decides nothing about jobs but who runs them when.

mod attempt;
mod base64;
mod body;
mod clock;
mod crew;
mod desk;
mod digest;
mod events;
mod follow;
mod foreman;
mod gang;
mod hand;
mod jobs;
mod office;
mod order;
mod orphans;
mod outcome;
mod roll;
mod settle;
mod shown;
mod story;
mod tasks;

pub use jobs::{JobError, Jobs};
pub use office::JobSettings;
