//! `ostler store`: whether what must survive is whole, and a copy of it.
use super::args::StoreArgs;
use super::exit::{Exit, Failure};
pub(super) async fn run(_args: &StoreArgs) -> Result<Exit, Failure> {
    Err(Failure::failed("not yet"))
}
