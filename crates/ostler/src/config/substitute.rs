//! `${VAR}` and `${VAR:-default}` in strings.
//!
//! Separate because it is a small language of its own. It knows no keys, and it never shows a
//! variable's value in an error: values may be secrets.

/// Why a string could not be completed, and which bytes of it are to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    pub message: String,
    pub help: String,
}

/// Replaces each `${VAR}` and `${VAR:-default}`; `$${` stands for a literal `${`.
///
/// As in a shell, the default is used when the variable is unset or empty. Values are not
/// searched again, so a variable cannot smuggle in another one.
pub fn substitute(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let body = &rest[at + 2..];
        let end = body.find('}').ok_or_else(unclosed)?;
        out.push_str(&resolve(&body[..end], variable)?);
        rest = &body[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn resolve(body: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Unresolved> {
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    if !is_name(name) {
        return Err(bad_name(name));
    }
    match (variable(name), default) {
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(unset(name)),
    }
}

/// Whether this may be the name of an environment variable.
pub fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn unclosed() -> Unresolved {
    Unresolved {
        message: "`${` without its `}`".to_owned(),
        help: "close it, or write `$${` for a literal `${`".to_owned(),
    }
}

fn bad_name(name: &str) -> Unresolved {
    Unresolved {
        message: format!("`{name}` is not the name of an environment variable"),
        help: "write `${NAME}` or `${NAME:-default}`".to_owned(),
    }
}

fn unset(name: &str) -> Unresolved {
    Unresolved {
        message: format!("the environment variable `{name}` is not set"),
        help: format!("set it, or give a default: `${{{name}:-…}}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/ann".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${HOME}".to_owned()),
            _ => None,
        }
    }

    fn run(text: &str) -> Result<String, String> {
        substitute(text, &variable).map_err(|unresolved| unresolved.message)
    }

    #[test]
    fn variables_and_defaults_are_filled_in() {
        for (text, expected) in [
            ("plain $ and {x}", "plain $ and {x}"),
            ("${HOME}/a", "/home/ann/a"),
            ("${NONE:-x}-${HOME}", "x-/home/ann"),
            ("${NONE:-}", ""),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("$${HOME}", "${HOME}"),
            ("${NONE:-a:-b}", "a:-b"),
        ] {
            assert_eq!(run(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_value_is_not_searched_again() {
        assert_eq!(run("${TRICK}").as_deref(), Ok("${HOME}"));
    }

    #[test]
    fn an_unset_variable_without_default_is_an_error() {
        assert_eq!(run("a${NONE}").unwrap_err(), "the environment variable `NONE` is not set");
        assert_eq!(run("${HOME").unwrap_err(), "`${` without its `}`");
        assert_eq!(run("${1x}").unwrap_err(), "`1x` is not the name of an environment variable");
    }
}
