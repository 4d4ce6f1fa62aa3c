//! What the checks found.

use serde::Serialize;

use super::Transport;
use super::check::{Check, Group};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    Fail,
    /// The worker does not announce it, or there is nothing to see it with.
    Skip,
}

/// One check over one transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub transport: &'static str,
    pub group: Group,
    pub check: &'static str,
    pub verdict: Verdict,
    pub expected: &'static str,
    pub found: String,
}

impl Finding {
    pub(super) fn new(transport: Transport, check: Check, judged: Judged) -> Finding {
        let (verdict, found) = match judged {
            Ok(found) => (Verdict::Pass, found),
            Err(Fault::Failed { found, .. }) => (Verdict::Fail, found),
            Err(Fault::Skipped(why)) => (Verdict::Skip, why),
        };
        Finding {
            transport: transport.name(),
            group: check.group(),
            check: check.name(),
            verdict,
            expected: check.expected(),
            found,
        }
    }
}

/// How a check ended: what was found, or why that is not what it should be.
pub(super) type Judged = Result<String, Fault>;

#[derive(Debug)]
pub(super) enum Fault {
    /// `broken`: the process is no use for another check.
    Failed {
        found: String,
        broken: bool,
    },
    Skipped(String),
}

impl Fault {
    pub fn failed(found: impl Into<String>) -> Fault {
        Fault::Failed { found: found.into(), broken: false }
    }

    pub fn skipped(why: impl Into<String>) -> Fault {
        Fault::Skipped(why.into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}
