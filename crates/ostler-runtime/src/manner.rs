//! How a pool treats calls, as far as the core need not know. It can be changed while it runs.

use std::time::Duration;

use ostler_core::Affinity;

use crate::pool::{OnDisconnect, PoolSpec};
use crate::session::KeyedBy;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub request_timeout: Duration,
    pub max_body: u64,
    pub max_result: u64,
    pub on_disconnect: OnDisconnect,
    pub affinity: Affinity,
    pub keyed_by: Option<KeyedBy>,
}

impl Manner {
    pub fn of(spec: &PoolSpec) -> Self {
        Manner {
            request_timeout: spec.request_timeout,
            max_body: spec.max_body,
            max_result: spec.max_result,
            on_disconnect: spec.on_disconnect,
            affinity: spec.affinity,
            keyed_by: spec.key,
        }
    }
}
