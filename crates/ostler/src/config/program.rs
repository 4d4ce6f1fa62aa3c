//! What a pool's workers run: a Python file, or any command.

use std::path::{Path, PathBuf};

use super::section::Section;

/// The interpreter where none is set; found through `PATH`.
pub const DEFAULT_INTERPRETER: &str = "python3";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Python { file: PathBuf, interpreter: PathBuf },
    Command { argv: Vec<String> },
}

impl Program {
    /// A Python file under the default interpreter.
    pub fn python(file: PathBuf) -> Self {
        Self::Python { file, interpreter: DEFAULT_INTERPRETER.into() }
    }

    /// Stands in while the rest of a pool is read; never part of a configuration.
    pub(super) fn placeholder() -> Self {
        Self::Command { argv: Vec::new() }
    }

    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        // All are asked for, so that all are known keys whichever is used.
        let python = section.key("python", "a file of functions; the SDK is inside Ostler").text();
        let interpreter = section
            .key("interpreter", "what runs it, 3.9 or newer")
            .or_text(DEFAULT_INTERPRETER)
            .text();
        let command = section
            .key("command", "program and arguments of a worker that speaks the protocol")
            .texts();
        section.declare_either("python", "command");
        match (section.has("python"), section.has("command")) {
            (true, true) => {
                section.blame(
                    format!("{} has both `python` and `command`", section.title()),
                    "keep the one that starts the workers",
                );
                None
            }
            (false, false) => {
                section.blame(
                    format!("{} does not say what to run", section.title()),
                    "add `python = \"file.py\"` or `command = [\"program\", \"argument\"]`",
                );
                None
            }
            (true, false) => Some(Self::Python {
                file: python_file(section, python?),
                interpreter: interpreter.map_or_else(
                    || DEFAULT_INTERPRETER.into(),
                    |text| executable(section, text.get_ref()),
                ),
            }),
            (false, true) => {
                if section.has("interpreter") {
                    section.blame_key(
                        "interpreter",
                        "`interpreter` has no meaning beside `command`",
                        "make it the first word of `command`",
                    );
                }
                command_line(section, command?)
            }
        }
    }
}

fn python_file(section: &Section<'_>, text: toml::Spanned<String>) -> PathBuf {
    let around = section.reading().around;
    let file = around.root.join(text.get_ref());
    if !(around.exists)(&file) {
        section.reading().note(
            text.span(),
            format!("no such file: {}", file.display()),
            Some("paths are relative to the configuration's directory".to_owned()),
        );
    }
    file
}

fn command_line(section: &Section<'_>, words: Vec<toml::Spanned<String>>) -> Option<Program> {
    let mut argv: Vec<String> = words.into_iter().map(toml::Spanned::into_inner).collect();
    let empty = argv.first().is_none_or(String::is_empty);
    if empty || argv.iter().any(|word| word.contains('\0')) {
        section.reading().note(
            section.span_of("command"),
            "`command` must begin with a program, and no word may hold a zero byte",
            Some("write for example [\"node\", \"worker.js\"]".to_owned()),
        );
        return None;
    }
    argv[0] = executable(section, &argv[0]).to_string_lossy().into_owned();
    Some(Program::Command { argv })
}

/// A bare word is looked for in `PATH` when it starts; a path is relative to the configuration.
fn executable(section: &Section<'_>, text: &str) -> PathBuf {
    match text.contains('/') {
        true => section.reading().around.root.join(text),
        false => Path::new(text).to_owned(),
    }
}
