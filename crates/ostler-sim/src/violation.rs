//! A broken promise: which checker saw it, and what it saw.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub checker: &'static str,
    pub text: String,
}

pub type Verdict = Result<(), Violation>;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.text)
    }
}

/// `require!(holds, "checker", "what was seen", …)`
macro_rules! require {
    ($holds:expr, $checker:literal, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::violation::Violation { checker: $checker, text: format!($($seen)+) });
        }
    };
}
pub(crate) use require;
