//! Writing many rows of one kind with few statements. A statement goes to the database and back,
//! which takes longer than the row itself; and one of a length that was seen before is not compiled
//! again. So rows go out in groups of 64, 32, 16, …, 1: some statements for any number of rows, and
//! seven lengths in all.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::AssertSqlSafe;

use super::link::{Args, Cells, Dialect, Link, Sink};
use super::trouble::Trouble;
use crate::checksum::Sum;

/// Rows at once. With the widest table this is far from what a statement may have (32 766 arguments
/// in SQLite, 65 535 in PostgreSQL).
const GROUP_MAX: usize = 64;

/// The last column of a table whose rows are checked.
pub(crate) const CHECKSUM: &str = "checksum";

#[derive(Debug)]
pub(crate) struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    /// How many columns, from the first on, are its key.
    pub key: usize,
    pub again: Again,
}

/// What becomes of a row whose key is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Refused,
    Replaced,
}

/// A row of a table.
pub(crate) trait Stored {
    const TABLE: Table;

    /// In the order of the columns, but for the checksum.
    fn fields(&self, to: &mut impl Sink);

    fn checksum(&self) -> i64 {
        let mut sum = Sum::new();
        self.fields(&mut sum);
        sum.done()
    }
}

impl<T: Stored> Stored for &T {
    const TABLE: Table = T::TABLE;

    fn fields(&self, to: &mut impl Sink) {
        T::fields(self, to);
    }
}

impl<T: Stored> Stored for Box<T> {
    const TABLE: Table = T::TABLE;

    fn fields(&self, to: &mut impl Sink) {
        T::fields(self, to);
    }
}

fn put<T: Stored>(row: &T, args: &mut Args) {
    row.fields(args);
    if T::TABLE.columns.last() == Some(&CHECKSUM) {
        args.int(row.checksum());
    }
}

/// What was read, if the checksum that comes next in its row fits.
pub(crate) fn checked<T: Stored>(row: T, cells: &mut Cells<'_>) -> Result<T, Trouble> {
    match cells.int()? == row.checksum() {
        true => Ok(row),
        false => Err(Trouble::Checksum),
    }
}

/// The texts of statements that were used.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashMap<(&'static str, usize), Arc<str>>);

impl Texts {
    /// No key may be among them twice.
    pub async fn insert<T: Stored>(&mut self, link: &mut Link, rows: &[T]) -> Result<(), Trouble> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (group, after) = rest.split_at(group_of(rest.len()));
            let mut args = link.args();
            group.iter().for_each(|row| put(row, &mut args));
            let sql = self.text((T::TABLE.name, group.len()), || {
                insertion(&T::TABLE, group.len(), link.dialect())
            });
            link.execute(AssertSqlSafe(sql), args).await?;
            rest = after;
        }
        Ok(())
    }

    /// `before` names the statement and ends where the list of values begins.
    pub async fn for_each_of(
        &mut self,
        link: &mut Link,
        before: &'static str,
        ids: &[&str],
    ) -> Result<(), Trouble> {
        let mut rest = ids;
        while !rest.is_empty() {
            let (group, after) = rest.split_at(group_of(rest.len()));
            let mut args = link.args();
            group.iter().for_each(|id| args.text(id));
            let sql = self.text((before, group.len()), || {
                let marks = Marks::of(link.dialect());
                format!("{before} ({})", marks.take(group.len()).collect::<Vec<_>>().join(", "))
            });
            link.execute(AssertSqlSafe(sql), args).await?;
            rest = after;
        }
        Ok(())
    }

    fn text(&mut self, key: (&'static str, usize), make: impl FnOnce() -> String) -> Arc<str> {
        Arc::clone(self.0.entry(key).or_insert_with(|| make().into()))
    }
}

/// The largest group that these fill.
fn group_of(rows: usize) -> usize {
    1 << rows.min(GROUP_MAX).ilog2()
}

fn insertion(table: &Table, rows: usize, dialect: Dialect) -> String {
    let mut marks = Marks::of(dialect);
    let row = |_| {
        let row: Vec<String> = marks.by_ref().take(table.columns.len()).collect();
        format!("({})", row.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let (name, columns, rows) = (table.name, table.columns.join(", "), rows.join(", "));
    format!("INSERT INTO {name} ({columns}) VALUES {rows}{}", replacing(table))
}

fn replacing(table: &Table) -> String {
    if table.again == Again::Refused {
        return String::new();
    }
    let (key, rest) = table.columns.split_at(table.key);
    let set: Vec<String> = rest.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    format!(" ON CONFLICT ({}) DO UPDATE SET {}", key.join(", "), set.join(", "))
}

/// Places for arguments. SQLite looks up the name of each with every execution, by going through
/// all of them, so that they had better have none.
struct Marks {
    dialect: Dialect,
    last: usize,
}

impl Marks {
    fn of(dialect: Dialect) -> Self {
        Marks { dialect, last: 0 }
    }
}

impl Iterator for Marks {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.last += 1;
        Some(match self.dialect {
            Dialect::Sqlite => "?".to_owned(),
            Dialect::Postgres => format!("${}", self.last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Table =
        Table { name: "pair", columns: &["a", "b"], key: 1, again: Again::Replaced };

    #[test]
    fn any_number_of_rows_goes_out_in_groups_of_a_few_sizes() {
        for rows in 1..=1_000 {
            let (mut rest, mut groups) = (rows, 0);
            while rest > 0 {
                let group = group_of(rest);
                assert!(group.is_power_of_two() && group <= GROUP_MAX && group <= rest);
                (rest, groups) = (rest - group, groups + 1);
            }
            assert!(groups <= rows / GROUP_MAX + 6, "{rows} rows in {groups} groups");
        }
    }

    #[test]
    fn each_dialect_has_its_marks() {
        assert_eq!(
            insertion(&PAIR, 2, Dialect::Postgres),
            "INSERT INTO pair (a, b) VALUES ($1, $2), ($3, $4) ON CONFLICT (a) DO UPDATE SET \
             b = excluded.b"
        );
        assert_eq!(
            insertion(&Table { again: Again::Refused, ..PAIR }, 2, Dialect::Sqlite),
            "INSERT INTO pair (a, b) VALUES (?, ?), (?, ?)"
        );
    }
}
