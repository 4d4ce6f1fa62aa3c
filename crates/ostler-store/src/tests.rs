//! What needs the clock or the disk in hand.

mod expiry;
mod faults;
mod restart;
mod scale;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::clock::Time;
use crate::clock::tests::HandClock;
use crate::disk::{Disk, NoDisk};
use crate::draft::Rules;
use crate::live::Live;
use crate::{NewSession, Patch, SessionNotice, SessionSettings, Sessions};

/// 2026, in milliseconds.
const START: i64 = 1_790_000_000_000;
const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(1);

fn on(disk: impl Disk, settings: SessionSettings, clock: &HandClock) -> Sessions {
    let rules = Rules { settings, boot: Uuid::now_v7() };
    Sessions::start(rules, Time::new(clock.clone()), Live::default(), 1, disk)
}

fn in_memory(settings: SessionSettings) -> (Sessions, HandClock) {
    let clock = HandClock::at(START);
    (on(NoDisk, settings, &clock), clock)
}

fn named(id: &str) -> NewSession {
    NewSession { id: Some(id.to_owned()), ..NewSession::default() }
}

fn lasting(id: &str, ttl: Duration) -> NewSession {
    NewSession { ttl: Some(ttl), ..named(id) }
}

fn merge(text: &str) -> Patch {
    let metadata = RawValue::from_string(text.to_owned()).unwrap();
    Patch { metadata: Some(metadata), ..Patch::default() }
}

fn told(sessions: &Sessions) -> Arc<Mutex<Vec<SessionNotice>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    sessions.watch(move |notice| listener.lock().unwrap().push(notice.clone()));
    told
}
