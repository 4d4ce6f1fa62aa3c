//! What ids of sessions, names of programs and content types may look like: they appear in paths,
//! headers and logs as they are.

use crate::error::SessionError;

pub(crate) const ID_MAX: usize = 255;
pub(crate) const PROGRAM_MAX: usize = 128;
const CONTENT_TYPE_MAX: usize = 255;

/// What the HTTP API has in the place of an id.
const RESERVED: [&str; 1] = ["sweep"];

pub(crate) fn check_id(id: &str) -> Result<(), SessionError> {
    if RESERVED.contains(&id) {
        return Err(SessionError::Invalid(format!("no session can be called `{id}`")));
    }
    check("a session's id", id, ID_MAX)
}

pub(crate) fn check_program(name: &str) -> Result<(), SessionError> {
    check("a program's name", name, PROGRAM_MAX)
}

pub(crate) fn check_content_type(content_type: &str) -> Result<(), SessionError> {
    let fits = (1..=CONTENT_TYPE_MAX).contains(&content_type.len())
        && content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    fits.then_some(()).ok_or_else(|| {
        SessionError::Invalid(format!(
            "a content type has 1 to {CONTENT_TYPE_MAX} printable ASCII characters"
        ))
    })
}

/// A new id, in the order of time.
pub(crate) fn made() -> String {
    format!("s_{}", uuid::Uuid::now_v7().simple())
}

fn check(what: &str, given: &str, max: usize) -> Result<(), SessionError> {
    let fits = (1..=max).contains(&given.len())
        && given.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    fits.then_some(()).ok_or_else(|| {
        SessionError::Invalid(format!(
            "{what} has 1 to {max} printable ASCII characters, no space and no `/`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_printable_and_stay_in_one_segment_of_a_path() {
        let longest = "x".repeat(ID_MAX);
        for good in ["a", "user:1@example.com", "..", "~!\"", &longest] {
            assert_eq!(check_id(good), Ok(()), "{good}");
        }
        let longer = "x".repeat(ID_MAX + 1);
        for bad in ["", " ", "a b", "a/b", "a\n", "\u{7f}", "é", "a\0", &longer] {
            assert!(matches!(check_id(bad), Err(SessionError::Invalid(_))), "{bad:?}");
        }
    }

    #[test]
    fn names_of_programs_are_shorter() {
        assert_eq!(check_program(&"x".repeat(PROGRAM_MAX)), Ok(()));
        assert!(check_program(&"x".repeat(PROGRAM_MAX + 1)).is_err());
        assert!(check_program("").is_err());
    }

    #[test]
    fn content_types_may_have_parameters() {
        assert_eq!(check_content_type("text/plain; charset=utf-8"), Ok(()));
        assert!(check_content_type("").is_err());
        assert!(check_content_type("text/plain\r\nX: y").is_err());
    }

    #[test]
    fn made_ids_are_good_ids_and_differ() {
        let (one, other) = (made(), made());
        assert!(one.starts_with("s_") && one != other);
        assert_eq!(check_id(&one), Ok(()));
    }
}
