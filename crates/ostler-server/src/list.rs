//! Lists that are read page by page. A cursor is the key of the last item of a page, so that a
//! page never repeats or skips what was there all the time, whatever came or went between.

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::query::invalid;

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// One page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// `?cursor=` of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    pub fn whole(items: Vec<T>) -> Self {
        Page { items, next_cursor: None }
    }

    /// The first `limit` of what is left, in its order. `key` names an item.
    pub fn cut(rest: impl Iterator<Item = T>, limit: usize, key: impl Fn(&T) -> String) -> Self {
        let mut items: Vec<T> = rest.take(limit + 1).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = items.last().filter(|_| more).map(key);
        Page { items, next_cursor }
    }

    pub fn map<U>(self, spell: impl FnMut(T) -> U) -> Page<U> {
        let items = self.items.into_iter().map(spell).collect();
        Page { items, next_cursor: self.next_cursor }
    }
}

/// Where a list that is numbered goes on. The store counts no further than this.
pub(crate) const NUMBER_MAX: u64 = i64::MAX as u64;

pub(crate) fn after(parameter: &str, given: Option<u64>) -> Result<u64, Problem> {
    match given {
        Some(number) if number > NUMBER_MAX => {
            Err(invalid(format!("`{parameter}` is {number}; nothing has such a number")))
        }
        given => Ok(given.unwrap_or_default()),
    }
}

pub(crate) fn limit(given: Option<usize>) -> Result<usize, Problem> {
    match given {
        None => Ok(LIMIT),
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(limit) => Err(invalid(format!("`limit` is {limit}; use 1 to {LIMIT_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let all = [1, 2, 3, 4, 5];
        let (mut after, mut seen) = (0, Vec::new());
        loop {
            let rest = all.into_iter().filter(|n| *n > after);
            let page = Page::cut(rest, 2, |n: &i32| n.to_string());
            seen.push(page.items);
            let Some(cursor) = page.next_cursor else { break };
            after = cursor.parse().unwrap();
        }
        assert_eq!(seen, [vec![1, 2], vec![3, 4], vec![5]]);
    }

    #[test]
    fn a_full_last_page_has_no_next() {
        let page = Page::cut([1, 2].into_iter(), 2, |n| n.to_string());
        assert_eq!(page.next_cursor, None);
    }

    #[test]
    fn numbers_end_where_the_store_ends() {
        assert_eq!(after("cursor", None).unwrap(), 0);
        assert_eq!(after("cursor", Some(NUMBER_MAX)).unwrap(), NUMBER_MAX);
        assert_eq!(after("cursor", Some(NUMBER_MAX + 1)).unwrap_err().status, 422);
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(limit(None).unwrap(), LIMIT);
        assert_eq!(limit(Some(LIMIT_MAX)).unwrap(), LIMIT_MAX);
        assert!(limit(Some(0)).is_err() && limit(Some(LIMIT_MAX + 1)).is_err());
    }
}
