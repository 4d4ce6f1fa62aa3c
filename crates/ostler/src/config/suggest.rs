//! The nearest known word to one that is not known.
//!
//! Separate because keys, enum values, units and pool names all use it. It only proposes; the
//! caller words the sentence.

/// The candidate that `word` most likely stands for, if one is near enough.
///
/// Near enough is a third of the letters: `sise` finds `size`, `banana` finds nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count().min(64) / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits that turn `left` into `right`: insert, remove, replace, swap two neighbours. Letter case
/// does not count. Only the first 64 characters are looked at, so a huge key costs nothing.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = fold(left);
    let right: Vec<char> = fold(right);
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && a == right[column - 1] && b == left[row - 1] {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

fn fold(word: &str) -> Vec<char> {
    word.chars().take(64).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["size", "queue_max", "queue_timeout", "python"];

    #[test]
    fn a_slip_of_the_finger_finds_its_key() {
        for (word, key) in [
            ("sise", "size"),
            ("szie", "size"),
            ("Python", "python"),
            ("pyhton", "python"),
            ("queue_timout", "queue_timeout"),
            ("queue-max", "queue_max"),
        ] {
            assert_eq!(nearest(word, KEYS), Some(key), "{word}");
        }
    }

    #[test]
    fn a_word_of_another_kind_finds_nothing() {
        for word in ["banana", "x", "sessions", ""] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }

    #[test]
    fn a_swap_counts_as_one_edit() {
        assert_eq!(distance("szie", "size"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
