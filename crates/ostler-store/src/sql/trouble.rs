//! What goes wrong in a database, and what that means: whether there was no room, whether these rows
//! are to blame, whether the connection can be used again, and what somebody is to do about it.

use std::fmt;

use sqlx::Error;

#[derive(Debug)]
pub(crate) enum Trouble {
    Database(Error),
    /// What was read is not what was written.
    Damaged(String),
    Checksum,
    /// Another server has it by now. Its name.
    Taken(String),
}

impl Trouble {
    pub fn damaged(what: impl Into<String>) -> Self {
        Trouble::Damaged(what.into())
    }

    pub fn kind(&self) -> Kind {
        let error = match self {
            Trouble::Database(error) => error,
            Trouble::Damaged(_) | Trouble::Checksum => return Kind::Damaged,
            Trouble::Taken(_) => return Kind::Taken,
        };
        match error {
            Error::Database(said) => match said.code() {
                Some(code) if is_state(&code) => of_postgres(&code),
                Some(code) => code.parse().map_or(Kind::Other, of_sqlite),
                None => Kind::Other,
            },
            Error::Encode(_) => Kind::Rows,
            Error::ColumnDecode { .. } | Error::Decode(_) | Error::ColumnNotFound(_) => {
                Kind::Damaged
            }
            Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => Kind::Lost,
            _ => Kind::Other,
        }
    }

    /// Names the trouble and what to do next.
    pub fn reason(&self) -> String {
        let advice = match self.kind() {
            Kind::Full => return "the disk is full; make room, or let what is kept expire".into(),
            Kind::ReadOnly => {
                "it may only be read; give this user the right to write it and its directory"
            }
            Kind::Busy => "another program holds it; end that one",
            Kind::Rows => "the database does not take this value",
            Kind::Damaged => "restore a backup, and look at the disk that it is on",
            Kind::Lost => "the next change connects anew",
            Kind::Taken => "restart this one",
            Kind::Other => "look at the disk or the server that it is on",
        };
        format!("{self}; {advice}")
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Database(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without the prefix `error returned from database:`, which says nothing.
            Trouble::Database(Error::Database(said)) => f.write_str(said.message()),
            Trouble::Database(error) => error.fmt(f),
            Trouble::Damaged(what) => f.write_str(what),
            Trouble::Checksum => f.write_str("its checksum does not fit"),
            Trouble::Taken(name) => write!(f, "{name} was lost to another server"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Full,
    ReadOnly,
    Busy,
    /// The value does not fit, or a constraint forbids it.
    Rows,
    Damaged,
    /// The connection.
    Lost,
    /// By another server.
    Taken,
    Other,
}

impl Kind {
    /// Of a statement: the transaction can be rolled back and the connection used again.
    pub fn leaves_the_connection(self) -> bool {
        matches!(self, Kind::Full | Kind::ReadOnly | Kind::Busy | Kind::Rows)
    }

    /// Of a commit: it certainly did not happen.
    pub fn refuses_a_commit(self) -> bool {
        self.leaves_the_connection()
    }
}

/// PostgreSQL's codes have five letters and digits; SQLite's are numbers.
fn is_state(code: &str) -> bool {
    code.len() == 5
}

fn of_postgres(state: &str) -> Kind {
    match state {
        "53100" => Kind::Full,
        "25006" => Kind::ReadOnly,
        "55P03" | "40001" | "40P01" => Kind::Busy,
        "XX001" | "XX002" => Kind::Damaged,
        _ => match &state[..2] {
            "22" | "23" | "54" => Kind::Rows,
            "08" | "57" | "53" => Kind::Lost,
            _ => Kind::Other,
        },
    }
}

/// By the primary result code.
fn of_sqlite(code: i32) -> Kind {
    match code & 0xff {
        BUSY | LOCKED => Kind::Busy,
        READ_ONLY => Kind::ReadOnly,
        CORRUPT | NOT_A_DATABASE => Kind::Damaged,
        FULL => Kind::Full,
        TOO_BIG | CONSTRAINT | MISMATCH => Kind::Rows,
        _ => Kind::Other,
    }
}

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const NOT_A_DATABASE: i32 = 26;

/// SQLite's primary code, for those who open a file.
pub(super) fn sqlite_code(error: &Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
