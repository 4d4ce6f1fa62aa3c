//! What everything that can happen does in every state: one row per happening, one column per
//! state, one letter per cell. Rows are drawn as text, so that a table is read as it is checked.
//! The list of rows is exhaustive by its type: a new event does not compile without one.

mod lifecycle;
mod process;
mod request;
mod status;

use ostler_core::{Event, Notice};

use crate::support::Stage;

/// Something that can happen, and what comes of it in each state.
pub struct Row<T> {
    pub what: &'static str,
    /// Which of its kind, where there are several.
    pub which: &'static str,
    pub make: fn(&mut Stage) -> T,
    /// Whether `make` made what the row says.
    pub fits: fn(&T) -> bool,
    cells: &'static str,
}

impl<T> Row<T> {
    pub fn name(&self) -> String {
        [self.what, self.which].join(" ").trim_end().to_owned()
    }

    /// Each state with its letter.
    pub fn cells<S: Copy>(&self, states: &[S]) -> Vec<(S, char)> {
        let letters: Vec<char> = self.cells.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(letters.len(), states.len(), "{} has a cell for every state", self.name());
        states.iter().copied().zip(letters).collect()
    }

    pub fn happening(&self, stage: &mut Stage) -> T {
        let made = (self.make)(stage);
        assert!((self.fits)(&made), "{} made something else", self.name());
        made
    }
}

macro_rules! rows {
    ($type:ident; $($variant:ident { $($name:literal $make:expr => $cells:literal),+ $(,)? })+) => {{
        fn _each_has_a_row(it: &$type) {
            match it {
                $($type::$variant { .. } => {})+
            }
        }
        vec![$($(crate::tables::Row {
            what: stringify!($variant),
            which: $name,
            make: $make,
            fits: |it| matches!(it, $type::$variant { .. }),
            cells: $cells,
        }),+),+]
    }};
}
use rows;

/// What a pool shows of itself that an event which came too late must leave alone.
#[derive(PartialEq)]
struct Untouched {
    workers: Vec<ostler_core::WorkerView>,
    queued: usize,
    lifecycle: ostler_core::Lifecycle,
}

impl Untouched {
    fn of(stage: &Stage) -> Self {
        Untouched {
            workers: stage.pool.workers().collect(),
            queued: stage.pool.view(stage.now).queued,
            lifecycle: stage.pool.lifecycle(),
        }
    }
}

/// One cell of a table about to be checked: what happens, and what there was before.
pub struct Before {
    untouched: Untouched,
    stale: u64,
}

impl Before {
    pub fn of(stage: &Stage) -> Self {
        Before { untouched: Untouched::of(stage), stale: stage.stale() }
    }

    pub fn was_late(&self, stage: &Stage) -> bool {
        stage.stale() > self.stale
    }

    /// It was dropped: counted once, told of at most, and nothing else.
    pub fn dropped(&self, stage: &mut Stage) -> Result<(), String> {
        let same = |name: &str, yes: bool| yes.then_some(()).ok_or_else(|| name.to_owned());
        same("is not counted", stage.stale() == self.stale + 1)?;
        same("changes something", Untouched::of(stage) == self.untouched)?;
        same("orders something", stage.take().is_empty() && stage.records().is_empty())?;
        let late = |notice: &Notice| matches!(notice, Notice::StaleDropped { .. });
        same("is told of as news", stage.notices().iter().all(late))
    }
}

pub fn expect<T: std::fmt::Debug + PartialEq>(is: T, should: T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("leads to {is:?}, not {should:?}")) }
}

/// The shell broke its word: that is a bug, and said aloud.
pub fn refused_aloud(mut stage: Stage, event: Event) -> Result<(), String> {
    let handled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || stage.feed(event)));
    if handled.is_err() { Ok(()) } else { Err("is impossible and was handled".to_owned()) }
}

/// Goes through every cell and names all that are not as drawn.
pub fn assert_as_drawn<T, S: Copy + std::fmt::Debug>(
    table: Vec<Row<T>>,
    states: &[S],
    check: impl Fn(&Row<T>, S, char) -> Result<(), String>,
) {
    let mut wrong = Vec::new();
    for row in table {
        for (state, cell) in row.cells(states) {
            if let Err(how) = check(&row, state, cell) {
                wrong.push(format!("{} while {state:?} {how}", row.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "not as drawn:\n{}", wrong.join("\n"));
}
