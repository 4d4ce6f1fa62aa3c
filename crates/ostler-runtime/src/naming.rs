//! Ids of requests whose callers gave them none. They are made of the pool's number and the
//! request's own, so that nothing has to be remembered to find a request by its id.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ostler_core::RequestId;

/// Tells the ids of this process from those of an earlier one.
static BOOT: LazyLock<u32> = LazyLock::new(|| uuid::Uuid::now_v7().as_u128() as u32);
static POOLS: AtomicU64 = AtomicU64::new(1);

/// A number for a pool, its own in this process.
pub(crate) fn next_pool() -> u64 {
    POOLS.fetch_add(1, Ordering::Relaxed)
}

/// The id of the n-th request of a pool; pool 0 is for what concerns none.
pub fn made_id(pool: u64, request: RequestId) -> String {
    let mut id = String::with_capacity(24);
    let _ = write!(id, "r_{:08x}{pool:04x}{:08x}", *BOOT, request.0);
    id
}

/// The request that an id of this process names.
pub(crate) fn request_of(pool: u64, id: &str) -> Option<RequestId> {
    let rest = id.strip_prefix("r_")?.strip_prefix(&format!("{:08x}{pool:04x}", *BOOT))?;
    let fits = (8..=16).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| u64::from_str_radix(rest, 16).ok()).flatten().map(RequestId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_request_in_its_pool_and_nowhere_else() {
        for number in [1, 0xffff_ffff, 0x1_0000_0000] {
            let id = made_id(3, RequestId(number));
            assert_eq!(request_of(3, &id), Some(RequestId(number)), "{id}");
            assert_eq!(request_of(4, &id), None);
        }
        for nonsense in ["", "r_", "r_0", "mine", "r_zzzzzzzz000300000001"] {
            assert_eq!(request_of(3, nonsense), None);
        }
    }
}
