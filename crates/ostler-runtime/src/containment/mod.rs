//! Processes that leave nothing behind.
//!
//! ```text
//! server                    library or daemon; its only children are root shims
//!  └─ Z  root shim          one per pool, subreaper; kills every child that it does not know
//!      ├─ fork server       optional: a preloaded interpreter that forks worker shims
//!      │   └─ M ─ W
//!      └─ M  worker shim    subreaper, or init of a PID namespace
//!          └─ W  worker     with whatever it starts
//! ```
//!
//! Each shim watches the server's pidfd, so nobody has to tell it when to clean up. Each worker
//! dies with its shim, and what a dead shim leaves falls to the root shim. The shims are this very
//! program, started again under another name: see [`enter_if_asked`].
//!
//! This module knows processes, not pools: no names of requests, no restarts, no timeouts but
//! those of a kill.

mod cgroup;
mod channel;
mod children;
mod contained;
mod error;
mod fork_server;
mod handle;
mod level;
mod members;
mod namespace;
mod pool_cgroup;
mod program;
mod reports;
mod root;
mod root_process;
mod root_shim;
mod shim;
mod spec;
mod sys;
mod title;
mod wire;

pub use contained::Contained;
pub use error::SpawnError;
pub use fork_server::ForkServer;
pub use handle::ProcessHandle;
pub use level::{Containment, Level, Rung};
pub use namespace::Namespaces;
pub use reports::{Cause, Exit, Proof, Report, Reports};
pub use root_process::ShimBinary;
pub use root_shim::{Cgroup, RootOptions, RootShim};
pub use spec::SpawnSpec;
pub use sys::Usage;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Becomes a shim if this process was started as one, and then never returns.
///
/// Must be the first line of `main` of every program that runs pools, before any thread or runtime
/// exists: shims are this program, started again. The role is in the first argument's place, where
/// the shell puts the program's name, so no command line can ask for it by accident.
pub fn enter_if_asked() {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    let Some(own_name) = arguments.next().and_then(|name| name.into_string().ok()) else {
        return;
    };
    if let Some(pool) = own_name.strip_prefix(title::ROOT_PREFIX) {
        root::run(pool);
    }
    if let Some(worker) = own_name.strip_prefix(title::SHIM_PREFIX) {
        let pid = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
        shim::take_over(worker.as_bytes(), pid.unwrap_or(0));
    }
}

/// A program that does not branch into its shims would start itself again and again.
fn check_entered() -> io::Result<()> {
    if ENTERED.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(io::Error::other(
        "this program runs pools but cannot become a shim: call \
         ostler_runtime::containment::enter_if_asked() as the first line of main",
    ))
}

/// Calls [`enter_if_asked`] before `main`, for test programs, whose `main` is not their own.
///
/// ```ignore
/// ostler_runtime::enter_before_main!();
/// ```
#[macro_export]
macro_rules! enter_before_main {
    () => {
        #[allow(unsafe_code)]
        const _: () = {
            extern "C" fn enter() {
                $crate::containment::enter_if_asked();
            }
            // SAFETY: the section holds functions that the loader calls before `main`.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static ENTER: extern "C" fn() = enter;
        };
    };
}
