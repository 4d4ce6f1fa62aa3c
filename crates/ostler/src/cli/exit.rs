//! How a command ends: the exit codes that scripts rely on, and failures in plain words.

use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok,
    /// It was tried and it failed.
    Failed,
    /// The arguments or the configuration are wrong.
    Usage,
    /// No server answers.
    NotRunning,
    /// The server runs, but a pool is not well.
    Degraded,
    /// The server refused; nothing ran.
    Refused,
    Timeout,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotRunning => 3,
            Self::Degraded => 4,
            Self::Refused => 5,
            Self::Timeout => 124,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it was asked to, and the code that says so.
#[derive(Debug)]
pub(super) struct Failure {
    pub exit: Exit,
    /// Safe for a terminal. Empty when there is nobody left to tell.
    message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl AsRef<str>) -> Self {
        Self { exit, message: crate::text::printable(message.as_ref()).into_owned() }
    }

    pub fn failed(message: impl AsRef<str>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub fn usage(message: impl AsRef<str>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Tells the user, and gives the code to end with.
    pub fn report(self) -> Exit {
        if !self.message.is_empty() {
            eprintln!("ostler: {}", self.message);
        }
        self.exit
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
