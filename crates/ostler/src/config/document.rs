//! The file as a whole: its version, its sections, and what must agree between them.

use std::borrow::Cow;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::Keys;
use super::section::{Reading, Section, did_you_mean};
use super::{
    Config, Idempotency, Invalid, Jobs, Pool, PoolName, Problem, Server, Sessions, Source, Store,
    Surroundings,
};

/// The version of the format that this program reads.
const VERSION: u32 = 1;

/// The most pools in one server.
const POOLS_MAX: usize = 100;

/// Reads a configuration, or says everything that is wrong with it.
pub fn read(source: &Source, around: &Surroundings<'_>) -> Result<Config, Invalid> {
    let document = parse(source)?;
    let reading = Reading::new(around);
    let top = Section::top(document.get_ref(), &reading);
    let config = contents(&top);
    top.finish();

    let problems = reading.into_problems();
    if !problems.is_empty() {
        return Err(Invalid::new(source.clone(), problems));
    }
    let written = toml::from_str(&source.text).expect("it has been read");
    Ok(Config { written, ..config })
}

pub(super) fn read_server(source: &Source, around: &Surroundings<'_>) -> Result<Server, Invalid> {
    read_part(source, around, server_of)
}

pub(super) fn read_store(source: &Source, around: &Surroundings<'_>) -> Result<Store, Invalid> {
    read_part(source, around, store_of)
}

/// One section, whatever is wrong with the others.
fn read_part<T>(
    source: &Source,
    around: &Surroundings<'_>,
    part: impl FnOnce(&Section<'_>) -> T,
) -> Result<T, Invalid> {
    let document = parse(source)?;
    let reading = Reading::new(around);
    let read = part(&Section::top(document.get_ref(), &reading));
    match reading.into_problems() {
        problems if problems.is_empty() => Ok(read),
        problems => Err(Invalid::new(source.clone(), problems)),
    }
}

/// Everything that may be written: what the readers ask of a file with one empty pool. What is
/// wrong with that file does not matter here.
pub(super) fn vocabulary() -> Keys {
    let source = Source::new("", "[pools.any]");
    let document = parse(&source).expect("this is TOML");
    let around =
        Surroundings { root: Path::new("/"), cores: 1, variable: &|_| None, exists: &|_| true };
    let reading = Reading::new(&around);
    let top = Section::top(document.get_ref(), &reading);
    contents(&top);
    top.finish()
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

fn contents(top: &Section<'_>) -> Config {
    version(top);
    let server = server_of(top);
    let store = store_of(top);
    let sessions = top.key("sessions", "what callers may keep here").table(Sessions::read);
    let jobs = top.key("jobs", "how much durable work there may be").table(Jobs::read);
    let idempotency =
        top.key("idempotency", "how long keys of requests are known").table(Idempotency::read);
    let pools = pools_of(top, server.max_body);
    check_default_pool(top, &server);
    let root = top.reading().around.root.to_owned();
    let written = toml::Table::new();
    Config { file: None, root, server, sessions, store, jobs, idempotency, pools, written }
}

fn version(top: &Section<'_>) {
    match top.key("version", "the version of this format").required().version(VERSION) {
        Some(true) => {}
        None => top.blame("`version` is missing", "add the line `version = 1`"),
        Some(false) => top.blame_key(
            "version",
            "this version of the configuration is not known",
            "write `version = 1`",
        ),
    }
}

fn server_of(top: &Section<'_>) -> Server {
    top.key("server", "where the server listens, and what holds for all pools").table(Server::read)
}

fn store_of(top: &Section<'_>) -> Store {
    top.key("store", "where what survives a restart is kept").table(Store::read)
}

/// The pools in the order of the file, without those that could not be read.
fn pools_of(top: &Section<'_>, max_body: u64) -> Vec<Pool> {
    let key = top.key("pools", "the pools by their names").required();
    let pools = key.tables(PoolName::RULE, 1..=POOLS_MAX, |name, section| {
        Pool::read(section, pool_name(name, section), max_body)
    });
    if !top.has("pools") {
        top.blame(
            "there is no pool",
            "add a table such as [pools.hello] with `python = \"hello.py\"`",
        );
    }
    pools.into_iter().flatten().collect()
}

/// The rest of a pool is read under any name, so that its problems are seen too.
fn pool_name(key: &Spanned<Cow<'_, str>>, section: &Section<'_>) -> PoolName {
    PoolName::parse(key.get_ref()).unwrap_or_else(|| {
        section.blame(
            format!("`{}` cannot be the name of a pool", key.get_ref()),
            name_help(key.get_ref()),
        );
        PoolName::of_file(Path::new(""))
    })
}

fn name_help(text: &str) -> String {
    let rule = "a lower-case letter, then letters, digits, _ or -, at most 63";
    match PoolName::like(text) {
        Some(like) => format!("{rule}; `{like}` would do"),
        None => rule.to_owned(),
    }
}

fn check_default_pool(top: &Section<'_>, server: &Server) {
    let names = || {
        let pools = top.value("pools")?.get_ref().as_table()?;
        Some(pools.keys().map(|key| key.get_ref().as_ref()).collect::<Vec<&str>>())
    };
    let (Some(wanted), Some(names)) = (&server.default_pool, names()) else {
        return;
    };
    if names.is_empty() || names.contains(&wanted.as_str()) {
        return;
    }
    let written = top.value("server").and_then(|server| server.get_ref().get("default_pool"));
    top.reading().note(
        written.map_or(0..0, Spanned::<DeValue<'_>>::span),
        format!("there is no pool `{wanted}`"),
        Some(did_you_mean(wanted, &names, "pools of this file")),
    );
}
