//! The `ostler` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ostler::cli::run(std::env::args_os()).into()
}
