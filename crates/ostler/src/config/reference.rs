//! The tables of `docs/configuration.md`, made of what the readers declare.
//!
//! A test: it holds the document to the code.

use std::fmt::Write as _;

use super::declared::{Declared, Fallback, Keys, Shape};
use super::document::vocabulary;
use super::units::{show_duration, show_size};

/// Each table of the file by its title, the file itself not counted.
fn tables() -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect("", &vocabulary(), &mut found);
    found
}

fn collect(path: &str, keys: &Keys, found: &mut Vec<(String, String)>) {
    for key in &keys.keys {
        let (path, inner) = match &key.shape {
            Shape::Table(inner) => (format!("{path}{}", key.name), inner),
            Shape::Tables { each, .. } => (format!("{path}{}.NAME", key.name), each),
            _ => continue,
        };
        if !inner.keys.is_empty() {
            found.push((format!("[{path}]"), render(inner)));
        }
        collect(&format!("{path}."), inner, found);
    }
}

fn render(keys: &Keys) -> String {
    let mut out = "| key | value | default | |\n|---|---|---|---|\n".to_owned();
    for key in keys.keys.iter().filter(|key| !matches!(key.shape, Shape::Table(_))) {
        let (value, default) = (value(&key.shape), default(key));
        let _ = writeln!(out, "| `{}` | {value} | {default} | {} |", key.name, key.about);
    }
    out
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Version(version) => version.to_string(),
        Shape::Text => "text".to_owned(),
        Shape::Texts => "list of texts".to_owned(),
        Shape::TextTable => "table of texts".to_owned(),
        Shape::Flag => "`true`, `false`".to_owned(),
        Shape::Count(range) => format!("{} to {}", range.start(), range.end()),
        Shape::Share(range) => format!("{} to {}", range.start(), range.end()),
        Shape::Duration(range) => {
            format!("{} to {}", show_duration(*range.start()), show_duration(*range.end()))
        }
        Shape::Size(range) => {
            format!("{} to {}", show_size(*range.start()), show_size(*range.end()))
        }
        Shape::Choice(words) => {
            words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Table(_) | Shape::Tables { .. } => "table".to_owned(),
    }
}

fn default(key: &Declared) -> String {
    match &key.fallback {
        Fallback::Nothing => String::new(),
        Fallback::Value(value) => format!("`{value}`"),
        Fallback::Words(words) => (*words).to_owned(),
    }
}

/// The part of the document under a table's heading.
fn chapter<'a>(document: &'a str, title: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("## `{title}`\n"))?;
    rest.split("\n## ").next()
}

#[test]
fn the_reference_names_every_key_with_its_bounds_and_default() {
    let document = include_str!("../../../../docs/configuration.md");
    let tables = tables();
    let stale: Vec<String> = tables
        .iter()
        .filter(|(title, table)| !chapter(document, title).unwrap_or("").contains(table.as_str()))
        .map(|(title, table)| format!("## `{title}`\n\n{table}"))
        .collect();
    assert!(stale.is_empty(), "docs/configuration.md should say:\n\n{}", stale.join("\n"));
    let headings = document.lines().filter(|line| line.starts_with("## `[")).count();
    assert_eq!(headings, tables.len(), "a table of the reference is not one of the code");
}
