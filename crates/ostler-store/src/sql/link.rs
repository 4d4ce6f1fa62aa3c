//! One connection, of either dialect, and what goes through it: arguments and rows. Statements are
//! written once; this is the only place that knows which database it talks to while they run.
//!
//! Values are text, 64-bit integers and bytes, nothing else: these mean the same in both.

use std::future::Future;
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{
    Arguments as _, Connection, PgConnection, Row as _, SqlSafeStr, SqlStr, SqliteConnection,
};

use super::trouble::Trouble;

/// A server across a network that says nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Link {
    pub fn args(&self) -> Args {
        let values = match self {
            Link::Sqlite(_) => Values::Sqlite(SqliteArguments::default()),
            Link::Postgres(_) => Values::Postgres(PgArguments::default()),
        };
        Args { values, refused: None }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Link::Sqlite(_) => Dialect::Sqlite,
            Link::Postgres(_) => Dialect::Postgres,
        }
    }

    /// How many rows it touched.
    pub async fn execute(&mut self, sql: impl SqlSafeStr, args: Args) -> Result<u64, Trouble> {
        let sql = sql.into_sql_str();
        match (self, args.taken()?) {
            (Link::Sqlite(connection), Values::Sqlite(args)) => {
                let done = sqlx::query_with(sql, args).execute(connection).await?;
                Ok(done.rows_affected())
            }
            (Link::Postgres(connection), Values::Postgres(args)) => {
                let done = in_time(sqlx::query_with(sql, args).execute(connection)).await?;
                Ok(done.rows_affected())
            }
            _ => Err(mixed()),
        }
    }

    pub async fn fetch(
        &mut self,
        sql: impl SqlSafeStr,
        args: Args,
    ) -> Result<Vec<Record>, Trouble> {
        let sql = sql.into_sql_str();
        match (self, args.taken()?) {
            (Link::Sqlite(connection), Values::Sqlite(args)) => {
                let rows = sqlx::query_with(sql, args).fetch_all(connection).await?;
                Ok(rows.into_iter().map(Record::Sqlite).collect())
            }
            (Link::Postgres(connection), Values::Postgres(args)) => {
                let rows = in_time(sqlx::query_with(sql, args).fetch_all(connection)).await?;
                Ok(rows.into_iter().map(Record::Postgres).collect())
            }
            _ => Err(mixed()),
        }
    }

    pub async fn fetch_first(
        &mut self,
        sql: impl SqlSafeStr,
        args: Args,
    ) -> Result<Option<Record>, Trouble> {
        Ok(self.fetch(sql, args).await?.into_iter().next())
    }

    /// The first value of the only row.
    pub async fn number(&mut self, sql: impl SqlSafeStr, args: Args) -> Result<i64, Trouble> {
        let first = self.fetch_first(sql, args).await?;
        first.ok_or_else(|| Trouble::damaged("a count has no row"))?.cells().int()
    }

    /// One or several statements without arguments.
    pub async fn script(&mut self, sql: impl Into<SqlStr>) -> Result<(), Trouble> {
        let sql = sqlx::raw_sql(sql.into());
        match self {
            Link::Sqlite(connection) => sql.execute(connection).await.map(drop)?,
            Link::Postgres(connection) => in_time(sql.execute(connection)).await.map(drop)?,
        }
        Ok(())
    }

    /// Politely: a file that nobody else has open is left whole, without its log.
    pub async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Link::Sqlite(connection) => connection.close().await,
            Link::Postgres(connection) => in_time(connection.close()).await,
        }
    }

    /// Without another word to the other side.
    pub async fn drop_hard(self) {
        let _ = match self {
            Link::Sqlite(connection) => connection.close_hard().await,
            Link::Postgres(connection) => connection.close_hard().await,
        };
    }
}

async fn in_time<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(late().into()))
}

fn mixed() -> Trouble {
    Trouble::damaged("arguments of another database")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// The arguments of one statement, in order.
#[derive(Debug)]
pub(crate) struct Args {
    values: Values,
    refused: Option<sqlx::Error>,
}

#[derive(Debug)]
enum Values {
    Sqlite(SqliteArguments),
    Postgres(PgArguments),
}

macro_rules! add {
    ($args:ident, $value:expr) => {{
        let added = match &mut $args.values {
            Values::Sqlite(values) => values.add($value),
            Values::Postgres(values) => values.add($value),
        };
        if let Err(error) = added {
            $args.refused = Some(sqlx::Error::Encode(error));
        }
    }};
}

/// Takes the fields of a row one after the other.
pub(crate) trait Sink {
    fn text(&mut self, value: &str);
    fn maybe_text(&mut self, value: Option<&str>);
    fn int(&mut self, value: i64);
    fn maybe_int(&mut self, value: Option<i64>);
    fn bytes(&mut self, value: &[u8]);
    fn maybe_bytes(&mut self, value: Option<&[u8]>);

    fn flag(&mut self, value: bool) {
        self.int(value.into());
    }
}

impl Sink for Args {
    fn text(&mut self, value: &str) {
        add!(self, value);
    }

    fn maybe_text(&mut self, value: Option<&str>) {
        add!(self, value);
    }

    fn int(&mut self, value: i64) {
        add!(self, value);
    }

    fn maybe_int(&mut self, value: Option<i64>) {
        add!(self, value);
    }

    fn bytes(&mut self, value: &[u8]) {
        add!(self, value);
    }

    fn maybe_bytes(&mut self, value: Option<&[u8]>) {
        add!(self, value);
    }
}

impl Args {
    pub fn with_text(mut self, value: &str) -> Self {
        self.text(value);
        self
    }

    pub fn with_int(mut self, value: i64) -> Self {
        self.int(value);
        self
    }

    fn taken(self) -> Result<Values, Trouble> {
        match self.refused {
            None => Ok(self.values),
            Some(error) => Err(error.into()),
        }
    }
}

/// A row as it was read.
#[derive(Debug)]
pub(crate) enum Record {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Record {
    /// Its values, from the first on.
    pub fn cells(&self) -> Cells<'_> {
        Cells { record: self, next: 0 }
    }
}

/// Reads the values of a row one after the other, in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    record: &'a Record,
    next: usize,
}

macro_rules! next {
    ($cells:ident, $kind:ty) => {{
        let at = $cells.next;
        $cells.next += 1;
        match $cells.record {
            Record::Sqlite(row) => row.try_get::<$kind, usize>(at)?,
            Record::Postgres(row) => row.try_get::<$kind, usize>(at)?,
        }
    }};
}

impl<'a> Cells<'a> {
    pub fn text(&mut self) -> Result<&'a str, Trouble> {
        Ok(next!(self, &'a str))
    }

    pub fn string(&mut self) -> Result<String, Trouble> {
        self.text().map(str::to_owned)
    }

    pub fn maybe_text(&mut self) -> Result<Option<&'a str>, Trouble> {
        Ok(next!(self, Option<&'a str>))
    }

    pub fn maybe_string(&mut self) -> Result<Option<String>, Trouble> {
        Ok(self.maybe_text()?.map(str::to_owned))
    }

    pub fn int(&mut self) -> Result<i64, Trouble> {
        Ok(next!(self, i64))
    }

    pub fn maybe_int(&mut self) -> Result<Option<i64>, Trouble> {
        Ok(next!(self, Option<i64>))
    }

    /// A count that this program wrote.
    pub fn count<N: TryFrom<i64>>(&mut self) -> Result<N, Trouble> {
        let number = self.int()?;
        N::try_from(number).map_err(|_| Trouble::damaged(format!("{number} is out of range")))
    }

    pub fn flag(&mut self) -> Result<bool, Trouble> {
        self.int().map(|flag| flag != 0)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, Trouble> {
        Ok(next!(self, Vec<u8>))
    }

    pub fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(next!(self, Option<Vec<u8>>))
    }

    /// Something that is written as its name or number.
    pub fn parsed<T>(
        &mut self,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Trouble> {
        let text = self.text()?;
        read(text).ok_or_else(|| Trouble::damaged(format!("`{text}` is no {what}")))
    }

    pub fn maybe_parsed<T>(
        &mut self,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Trouble> {
        let Some(text) = self.maybe_text()? else { return Ok(None) };
        let value = read(text).ok_or_else(|| Trouble::damaged(format!("`{text}` is no {what}")));
        value.map(Some)
    }
}
