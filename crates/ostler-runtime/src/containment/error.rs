//! Why a process could not be started.

use std::io;
use std::path::PathBuf;

use super::program::Stage;
use super::spec::SpawnSpec;

/// Nothing is left running after any of these.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot run `{program}`: {source}; check the pool's command and its PATH")]
    Program { program: String, source: io::Error },
    #[error("cannot start in directory `{}`: {source}; check the pool's working directory", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("the root shim of this pool is gone; start another one")]
    RootShimLost,
    #[error("the fork server cannot be used: {reason}; change the pool's preload list")]
    Preload { reason: String },
    #[error("the fork server of this pool is gone; start another one")]
    ForkServerLost,
    #[error("the worker's shim was killed while the worker started")]
    ShimLost,
}

impl SpawnError {
    pub(super) fn refused(spec: &SpawnSpec, stage: Stage, source: io::Error) -> SpawnError {
        match stage {
            Stage::Fork => SpawnError::System {
                what: "cannot fork; check the limits on processes and memory",
                source,
            },
            Stage::Arm => {
                SpawnError::System { what: "cannot prepare the worker's process", source }
            }
            Stage::Directory => {
                SpawnError::Directory { path: spec.cwd.clone().unwrap_or_default(), source }
            }
            Stage::Exec => SpawnError::Program {
                program: spec.program().to_string_lossy().into_owned(),
                source,
            },
        }
    }
}
