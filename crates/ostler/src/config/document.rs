//! The file as a whole: its version, its sections, and what must agree between them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::section::{Reading, Section, did_you_mean};
use super::{Config, Invalid, Pool, PoolName, Problem, Server, Source, Surroundings};

/// The most pools in one server.
const POOLS_MAX: usize = 100;

/// Reads a configuration, or says everything that is wrong with it.
pub fn read(source: &Source, around: &Surroundings<'_>) -> Result<Config, Invalid> {
    let document = parse(source)?;
    let reading = Reading::new(around);
    let top = Section::new("the top level", 0..0, document.get_ref(), &reading);
    version(&top);
    let server = server_of(&top, &reading);
    store_of(&top, &reading);
    let pools = pools_of(&top, &reading, server.max_body);
    check_default_pool(&top, &reading, &server, &pools);
    top.finish();

    let problems = reading.into_problems();
    if !problems.is_empty() {
        return Err(Invalid::new(source.clone(), problems));
    }
    Ok(Config {
        file: None,
        root: around.root.to_owned(),
        server,
        pools: pools.into_values().flatten().collect(),
    })
}

pub(super) fn read_server(source: &Source, around: &Surroundings<'_>) -> Result<Server, Invalid> {
    let document = parse(source)?;
    let reading = Reading::new(around);
    let top = Section::new("the top level", 0..0, document.get_ref(), &reading);
    let server = server_of(&top, &reading);
    match reading.into_problems() {
        problems if problems.is_empty() => Ok(server),
        problems => Err(Invalid::new(source.clone(), problems)),
    }
}

/// The document, or everything that is not TOML in it. What the values mean is not judged before
/// the text is sound: half a table would only give rise to false alarms.
fn parse(source: &Source) -> Result<Spanned<DeTable<'_>>, Invalid> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    if errors.is_empty() {
        return Ok(document);
    }
    let problems = errors.into_iter().map(|error| Problem {
        span: error.span().unwrap_or(0..0),
        message: error.message().to_owned(),
        help: None,
    });
    Err(Invalid::new(source.clone(), problems.collect()))
}

fn version(top: &Section<'_>) {
    match top.value("version").map(Spanned::get_ref) {
        None => top.blame("`version` is missing", "add the line `version = 1`"),
        Some(DeValue::Integer(number)) if number.as_str() == "1" => {}
        Some(_) => top.reading().note(
            top.span_of("version"),
            "this version of the configuration is not known",
            Some("write `version = 1`".to_owned()),
        ),
    }
}

fn server_of(top: &Section<'_>, reading: &Reading<'_>) -> Server {
    let defaults = || Server::defaults(reading.around.root);
    let section = table(top, "server", "[server]", reading);
    section.map_or_else(defaults, Server::read)
}

/// `[store]` has its place in the file; no setting of it is obeyed yet, so none is accepted.
fn store_of(top: &Section<'_>, reading: &Reading<'_>) {
    if let Some(section) = table(top, "store", "[store]", reading) {
        section.finish();
    }
}

/// The pools by their place in the file; `None` for one that could not be read.
fn pools_of(
    top: &Section<'_>,
    reading: &Reading<'_>,
    max_body: u64,
) -> BTreeMap<usize, Option<Pool>> {
    let Some(value) = top.value("pools") else {
        top.blame(
            "there is no pool",
            "add a table such as [pools.hello] with `python = \"hello.py\"`",
        );
        return BTreeMap::new();
    };
    let DeValue::Table(pools) = value.get_ref() else {
        reading.note(
            value.span(),
            "`pools` must be a table of pools",
            Some("write [pools.NAME]".to_owned()),
        );
        return BTreeMap::new();
    };
    if pools.is_empty() || pools.len() > POOLS_MAX {
        reading.note(
            value.span(),
            format!("there must be between 1 and {POOLS_MAX} pools, not {}", pools.len()),
            None,
        );
    }
    pools
        .iter()
        .map(|(name, value)| (name.span().start, pool_of(name, value, reading, max_body)))
        .collect()
}

fn pool_of(
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    reading: &Reading<'_>,
    max_body: u64,
) -> Option<Pool> {
    let name = PoolName::parse(key.get_ref());
    if name.is_none() {
        reading.note(
            key.span(),
            format!("`{}` cannot be the name of a pool", key.get_ref()),
            Some(name_help(key.get_ref())),
        );
    }
    let title = format!("[pools.{}]", key.get_ref());
    let DeValue::Table(table) = value.get_ref() else {
        reading.note(value.span(), format!("{title} must be a table"), None);
        return None;
    };
    // The rest is read under any name, so that its problems are seen too.
    let name = name.unwrap_or_else(|| PoolName::of_file(Path::new("")));
    Pool::read(Section::new(title, key.span(), table, reading), name, max_body)
}

fn name_help(text: &str) -> String {
    let rule = "a lower-case letter, then letters, digits, _ or -, at most 63";
    match PoolName::like(text) {
        Some(like) => format!("{rule}; `{like}` would do"),
        None => rule.to_owned(),
    }
}

fn check_default_pool(
    top: &Section<'_>,
    reading: &Reading<'_>,
    server: &Server,
    pools: &BTreeMap<usize, Option<Pool>>,
) {
    let Some(wanted) = &server.default_pool else {
        return;
    };
    let written = top.value("pools").map(Spanned::get_ref);
    let names: Vec<&str> = written
        .and_then(DeValue::as_table)
        .map(|table| table.keys().map(|key| key.get_ref().as_ref()).collect())
        .unwrap_or_default();
    if pools.is_empty() || names.contains(&wanted.as_str()) {
        return;
    }
    let span = top
        .value("server")
        .and_then(|server| server.get_ref().get("default_pool"))
        .map_or(0..0, Spanned::span);
    reading.note(
        span,
        format!("there is no pool `{wanted}`"),
        Some(did_you_mean(wanted, &names, "pools of this file")),
    );
}

fn table<'a>(
    top: &Section<'a>,
    key: &'static str,
    title: &str,
    reading: &'a Reading<'a>,
) -> Option<Section<'a>> {
    let value = top.value(key)?;
    let DeValue::Table(table) = value.get_ref() else {
        reading.note(
            value.span(),
            format!("`{key}` must be a table"),
            Some(format!("write {title}")),
        );
        return None;
    };
    Some(Section::new(title, value.span(), table, reading))
}
