//! `ostler completions`: what a shell needs to complete the command line, made of its declaration.

use clap::CommandFactory as _;

use super::args::{Args, CompletionsArgs};
use super::exit::{Exit, Failure};
use super::output;

pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "ostler", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
