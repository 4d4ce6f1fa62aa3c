//! A statement that is put together from constant pieces. Values are never among them: they go as
//! arguments.

use std::fmt::Write;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::sql::Table;

#[derive(Debug)]
pub(super) struct Query(String);

impl Query {
    pub fn of(sql: &str) -> Self {
        Query(sql.to_owned())
    }

    pub fn with(mut self, sql: &str) -> Self {
        self.0.push_str(sql);
        self
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// All columns of a table, under the name that it has here.
    pub fn columns(mut self, named: &str, table: &Table) -> Self {
        for (nth, column) in table.columns.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(self.0, "{comma}{named}.{column}").expect("a string takes all");
        }
        self
    }

    /// `($1, $2, …)`.
    pub fn list(mut self, length: usize) -> Self {
        let marks: Vec<String> = (1..=length).map(|nth| format!("${nth}")).collect();
        write!(self.0, "({})", marks.join(", ")).expect("a string takes all");
        self
    }
}

impl SqlSafeStr for Query {
    fn into_sql_str(self) -> SqlStr {
        AssertSqlSafe(self.0).into_sql_str()
    }
}
