//! Values out of a closed list: how they are found by their names, and how the description of the
//! API shows them. Both come from the one list, so that they cannot differ.

use std::marker::PhantomData;

use ostler_core::{JobStatus, Phase, Status};
use ostler_runtime::{EventKind, RequestState, phase_name};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::problem::Problem;
use crate::query::invalid;

pub(crate) trait Listed: Copy + 'static {
    const ALL: &'static [Self];

    fn name(self) -> &'static str;

    /// Names for several of them at once.
    fn groups() -> Vec<&'static str> {
        Vec::new()
    }
}

impl Listed for Status {
    const ALL: &'static [Self] = &Status::ALL;

    fn name(self) -> &'static str {
        Status::name(self)
    }
}

impl Listed for JobStatus {
    const ALL: &'static [Self] = &JobStatus::ALL;

    fn name(self) -> &'static str {
        JobStatus::name(self)
    }
}

impl Listed for RequestState {
    const ALL: &'static [Self] = &RequestState::ALL;

    fn name(self) -> &'static str {
        RequestState::name(self)
    }
}

impl Listed for Phase {
    const ALL: &'static [Self] = &[
        Phase::Starting,
        Phase::Ready,
        Phase::Busy,
        Phase::Degraded,
        Phase::Stopping,
        Phase::Dead,
    ];

    fn name(self) -> &'static str {
        phase_name(self)
    }
}

impl Listed for EventKind {
    const ALL: &'static [Self] = EventKind::ALL;

    fn name(self) -> &'static str {
        EventKind::name(self)
    }

    fn groups() -> Vec<&'static str> {
        let mut groups: Vec<&str> = EventKind::ALL.iter().copied().map(group_of).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// What stands before the dot.
pub(crate) fn group_of(kind: EventKind) -> &'static str {
    kind.name().split('.').next().unwrap_or_default()
}

/// The value of that name.
pub(crate) fn named<T: Listed>(parameter: &str, given: &str) -> Result<T, Problem> {
    let found = T::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = T::ALL.iter().map(|known| known.name()).collect();
        invalid(format!("`{parameter}` is `{given}`; use one of {}", known.join(", ")))
    })
}

/// Such a name, in the description.
#[derive(Debug)]
pub(crate) struct OneOf<T>(PhantomData<T>);

impl<T: Listed> PartialSchema for OneOf<T> {
    fn schema() -> RefOr<Schema> {
        let names = T::ALL.iter().map(|known| known.name());
        let names: Vec<&str> = T::groups().into_iter().chain(names).collect();
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl<T: Listed> ToSchema for OneOf<T> {}

// The derives of the description read type arguments in a way of their own.
pub(crate) type StatusName = OneOf<Status>;
pub(crate) type JobStatusName = OneOf<JobStatus>;
pub(crate) type PhaseName = OneOf<Phase>;
pub(crate) type StateName = OneOf<RequestState>;
pub(crate) type KindName = OneOf<EventKind>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_outside_the_list_is_refused_with_the_list() {
        assert_eq!(named::<Status>("status", "PAUSED").unwrap(), Status::Paused);
        assert_eq!(named::<Status>("status", "paused").unwrap(), Status::Paused);
        for wrong in ["", "ASLEEP"] {
            let problem = named::<Status>("status", wrong).unwrap_err();
            assert_eq!(problem.status, 422, "{wrong}");
            let known = Status::ALL.map(Status::name).join(", ");
            assert!(problem.detail.contains(&known), "{}", problem.detail);
        }
    }

    #[test]
    fn the_description_shows_the_list() {
        let shown = serde_json::to_value(OneOf::<EventKind>::schema()).unwrap();
        let names = shown["enum"].as_array().unwrap();
        assert_eq!(names.len(), EventKind::groups().len() + EventKind::ALL.len(), "{shown}");
        assert!(names.contains(&"worker".into()) && names.contains(&"worker.ready".into()));
    }
}
