//! Where a pool's workers run, and what their environment holds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Spanned;

use super::section::Section;
use super::substitute::is_name;

pub(super) fn cwd(section: &Section<'_>) -> PathBuf {
    let around = section.reading().around;
    let key = section.key("cwd", "where the workers run").usually("the file's directory");
    let Some(text) = key.text() else {
        return around.root.to_owned();
    };
    let path = around.root.join(text.get_ref());
    if !(around.exists)(&path) {
        section.reading().note(
            text.span(),
            format!("no such directory: {}", path.display()),
            Some("paths are relative to the configuration's directory".to_owned()),
        );
    }
    path
}

/// Names that the server sets itself; a pool that set them would break its workers.
const RESERVED: &str = "OSTLER_";

pub(super) fn env(section: &Section<'_>) -> BTreeMap<String, String> {
    let entries = section.key("env", "variables for the workers").text_table().into_iter();
    entries
        .filter(|(name, _)| usable_name(section, name))
        .filter(|(name, value)| without_zero(section, name, value))
        .map(|(name, value)| (name.into_inner(), value))
        .collect()
}

pub(super) fn env_pass(section: &Section<'_>) -> Vec<String> {
    let about = "variables of the server that workers get too, beside `PATH`, `HOME` and the like";
    let names = section.key("env_pass", about).texts().unwrap_or_default().into_iter();
    names.filter(|name| usable_name(section, name)).map(Spanned::into_inner).collect()
}

fn usable_name(section: &Section<'_>, name: &Spanned<String>) -> bool {
    let text = name.get_ref();
    let (message, help) = match () {
        () if !is_name(text) => (
            format!("`{text}` is not the name of an environment variable"),
            "letters, digits and _, no digit first",
        ),
        () if text.starts_with(RESERVED) => {
            (format!("`{text}` is set by the server"), "names that begin with OSTLER_ are taken")
        }
        () => return true,
    };
    section.reading().note(name.span(), message, Some(help.to_owned()));
    false
}

fn without_zero(section: &Section<'_>, name: &Spanned<String>, value: &str) -> bool {
    let fine = !value.contains('\0');
    if !fine {
        section.reading().note(
            name.span(),
            format!("the value of `{}` contains a zero byte", name.get_ref()),
            Some("no environment can hold it".to_owned()),
        );
    }
    fine
}
