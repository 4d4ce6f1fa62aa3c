//! The `ostler` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ostler_runtime::containment::enter_if_asked();
    ostler::cli::run(std::env::args_os()).into()
}
