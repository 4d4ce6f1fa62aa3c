//! What is wrong with a configuration, worded for the person who wrote it.
//!
//! Separate from the reading: readers say which bytes are wrong and why, this module draws it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use super::source::{Position, Source};
use crate::text::one_line;

/// Problems shown of one file; a file of garbage should not fill a terminal.
const SHOWN: usize = 50;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the source.
    pub span: Range<usize>,
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A configuration that cannot be used, with everything that is wrong in it.
#[derive(Debug, Clone)]
pub struct Invalid {
    source: Source,
    problems: Vec<Problem>,
}

impl Invalid {
    pub(super) fn new(source: Source, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.span.start);
        Self { source, problems }
    }

    /// Everything that is wrong, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The same with the places where they begin.
    pub fn places(&self) -> impl Iterator<Item = (Position, &Problem)> {
        self.problems.iter().map(|problem| (self.source.position(problem.span.start), problem))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.problems.iter().take(SHOWN) {
            self.show(problem, f)?;
        }
        match self.problems.len() {
            1 => write!(f, "{}: 1 problem", self.source.name),
            n if n <= SHOWN => write!(f, "{}: {n} problems", self.source.name),
            n => write!(f, "{}: {n} problems, {SHOWN} shown", self.source.name),
        }
    }
}

impl Invalid {
    fn show(&self, problem: &Problem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.source.position(problem.span.start);
        let gutter = " ".repeat(at.line.to_string().len());
        writeln!(
            f,
            "{}:{}:{}: {}",
            self.source.name,
            at.line,
            at.column,
            one_line(&problem.message)
        )?;
        writeln!(f, "{}", self.source.excerpt(&problem.span))?;
        if let Some(help) = &problem.help {
            writeln!(f, "{gutter} = {}", one_line(help))?;
        }
        writeln!(f)
    }
}

impl std::error::Error for Invalid {}

/// Why a configuration file gave no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read the configuration {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("the configuration {} is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("the configuration {} is not UTF-8 text (byte {at})", path.display())]
    NotText { path: PathBuf, at: usize },
    #[error(transparent)]
    Invalid(#[from] Invalid),
}
