//! The README's first steps, read from the README and taken.

use std::process::Command;

use super::http::post;
use super::server::{Server, Site};

const README: &str = include_str!("../../../../README.md");

/// The first fenced block of a kind.
fn block(kind: &str) -> &'static str {
    let from = README.split_once(&format!("```{kind}\n")).expect("such a block").1;
    from.split_once("\n```").expect("its end").0
}

/// Commands and what they are said to print.
fn steps() -> Vec<(String, String)> {
    let steps = block("console").split("$ ").filter(|step| !step.is_empty());
    steps
        .map(|step| {
            let (command, output) = step.split_once('\n').expect("some output");
            (command.to_owned(), output.trim().to_owned())
        })
        .collect()
}

/// A command's words, as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\n' {command}");
    let output = Command::new("/bin/sh").args(["-c", &script]).output().expect("a shell");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn curl(server: &Server, words: &[String]) -> String {
    let (url, options) = words.split_last().expect("a URL");
    let (_, path) = url.split_once("6785").expect("the default address");
    let mut request = post(path, "");
    for pair in options.iter().filter(|word| *word != "-N").collect::<Vec<_>>().chunks(2) {
        request = match pair[0].as_str() {
            "-d" => request.body(pair[1]),
            "-H" => {
                let (name, value) = pair[1].split_once(": ").expect("a header");
                request.header(name, value)
            }
            other => panic!("what is {other}?"),
        };
    }
    let request = request.header("Content-Type", "application/x-www-form-urlencoded");
    server.ask(&request).text()
}

#[test]
fn the_first_steps_print_what_the_readme_says() {
    let site = Site::with_pools("[pools.hello]\npython = \"hello.py\"\n");
    std::fs::write(site.path().join("hello.py"), block("python")).expect("written");
    let server = site.serve();
    assert!(steps().len() >= 5, "{:?}", steps());
    for (command, output) in steps() {
        let words = words(&command);
        let (program, rest) = words.split_first().expect("a command");
        let printed = match program.as_str() {
            "curl" => curl(&server, rest),
            ostler if ostler.ends_with("/ostler") => {
                let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
                server.site.run(&rest).1
            }
            other => panic!("what is {other}?"),
        };
        assert_eq!(printed.trim(), output, "{command}");
    }
}
