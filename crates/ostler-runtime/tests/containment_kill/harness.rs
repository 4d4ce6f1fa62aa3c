//! As much of a test harness as the test runners ask for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

pub type Test = (&'static str, fn());

pub fn main(tests: &[Test], arguments: &[String]) -> ExitCode {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let chosen = tests.iter().filter(|(name, _)| is_chosen(name, arguments));
    if has("--list") {
        // None of them is ignored.
        for (name, _) in chosen.filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    ExitCode::from(if failed == 0 { 0 } else { 101 })
}

fn is_chosen(name: &str, arguments: &[String]) -> bool {
    let exact = arguments.iter().any(|argument| argument == "--exact");
    let mut filters = filters(arguments).peekable();
    let matches =
        |filter: &String| if exact { name == filter } else { name.contains(filter.as_str()) };
    filters.peek().is_none() || filters.any(matches)
}

/// Arguments that are neither options nor values of options.
fn filters(arguments: &[String]) -> impl Iterator<Item = &String> {
    const WITH_VALUE: [&str; 4] = ["--format", "--test-threads", "--color", "--logfile"];
    let mut is_value = false;
    arguments.iter().filter(move |argument| {
        let skip = is_value || argument.starts_with('-');
        is_value = WITH_VALUE.contains(&argument.as_str());
        !skip
    })
}
