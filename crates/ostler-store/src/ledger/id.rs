//! Names of what the ledger keeps. They rise with time, so that lists in their order are lists by
//! age and new rows lie side by side on the disk.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn fresh() -> Self {
                $name(format!(concat!($prefix, "{}"), Uuid::now_v7().simple()).into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Before every one of them.
            #[allow(dead_code)]
            pub(crate) fn lowest() -> Self {
                $name("".into())
            }
        }

        /// Its order is the order of its text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ();

            /// Only what [`fresh`](Self::fresh) makes.
            fn from_str(text: &str) -> Result<Self, ()> {
                let digits = text.strip_prefix($prefix).ok_or(())?;
                let plain = digits.len() == 32
                    && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                if plain { Ok($name(text.into())) } else { Err(()) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// `j_` and 32 hexadecimal digits.
    JobId,
    "j_"
);
id!(
    /// `s_` and 32 hexadecimal digits.
    ScheduleId,
    "s_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_read_again_and_nothing_else() {
        let id = JobId::fresh();
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        for wrong in ["", "j_", "s_0123", &id.as_str().to_uppercase(), "j_zz", &format!("{id}0")] {
            assert_eq!(wrong.parse::<JobId>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn they_rise() {
        let ids: Vec<JobId> = (0..1_000).map(|_| JobId::fresh()).collect();
        assert!(ids.is_sorted());
    }
}
