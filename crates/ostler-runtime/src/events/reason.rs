//! The core's reasons, under the names that events and counts give them.

use ostler_core::{Exit, PhaseReason, StopReason};

pub fn of_stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Shutdown => "shutdown",
        StopReason::Retired(why) => why.name(),
        StopReason::Discarded => "discarded",
        StopReason::Terminated => "terminated",
        StopReason::Paused => "paused",
        StopReason::ForcedCancel => "forced_cancel",
        StopReason::StartTimeout => "start_timeout",
        StopReason::StreamClosed => "stream_closed",
        StopReason::ProtocolViolation => "protocol_violation",
        StopReason::HeartbeatLost => "heartbeat_lost",
        StopReason::Unhealthy => "unhealthy",
        StopReason::Tainted => "tainted",
        StopReason::Hung => "hung",
        StopReason::MemoryExceeded => "memory_exceeded",
        StopReason::GaveUp => "gave_up",
    }
}

pub fn of_phase(reason: PhaseReason) -> &'static str {
    match reason {
        PhaseReason::Spawned => "spawned",
        PhaseReason::Ready => "ready",
        PhaseReason::Filled => "filled",
        PhaseReason::Freed => "freed",
        PhaseReason::HeartbeatMissed => "heartbeat_missed",
        PhaseReason::Heard => "heard",
        PhaseReason::CheckFailed => "check_failed",
        PhaseReason::CheckPassed => "check_passed",
        PhaseReason::Stopped(reason) => of_stop(reason),
        PhaseReason::Exited => "exited",
        PhaseReason::SpawnFailed => "spawn_failed",
    }
}

/// How a process ended, in one word.
pub fn of_exit(exit: Exit) -> &'static str {
    match exit {
        Exit::Code(_) => "exit",
        Exit::Signal(libc::SIGSEGV | libc::SIGBUS) => "segfault",
        Exit::Signal(libc::SIGABRT) => "abort",
        Exit::Signal(libc::SIGKILL) => "killed",
        Exit::Signal(_) => "signal",
        Exit::OutOfMemory => "oom",
        Exit::Unknown => "unknown",
    }
}
