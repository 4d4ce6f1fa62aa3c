//! One line of a job's story in plain words. A kind of a later version is told by its name.

use serde::Deserialize;
use serde_json::Value;

use super::super::cells::moment;
use super::progress::Progress;
use crate::text::one_line;

/// An event as the server tells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub at: String,
    pub kind: String,
    pub data: Value,
}

impl Event {
    /// When and what, ended.
    pub fn line(&self) -> String {
        format!("{}\n", one_line(&format!("{}  {}", moment(&self.at), self.account())))
    }

    /// How far the job is, if that is what it says.
    pub fn progress(&self) -> Option<Progress> {
        (self.kind == "progress").then(|| Progress::of(&self.data))
    }

    fn account(&self) -> String {
        match self.kind.as_str() {
            "status" => self.status(),
            "attempt" => self.attempt(),
            "progress" => format!("progress: {}", Progress::of(&self.data).words()),
            "message" => format!("says: {}", self.data),
            "log" => {
                let level = self.text("level").unwrap_or("info");
                format!("{level}: {}", self.text("text").unwrap_or_default().trim_end())
            }
            kind => format!("{kind}: {}", self.data),
        }
    }

    fn status(&self) -> String {
        let to = self.text("to").unwrap_or("?");
        let step = match self.text("from") {
            Some(from) => format!("{from} → {to}"),
            None => to.to_owned(),
        };
        match self.text("reason") {
            Some(reason) => format!("{step}: {}", plain(reason)),
            None => step,
        }
    }

    fn attempt(&self) -> String {
        let number = self.data.get("attempt").and_then(Value::as_u64).unwrap_or_default();
        match (self.text("outcome"), self.text("worker")) {
            (None, None) => format!("attempt {number} begins"),
            (None, Some(worker)) => format!("attempt {number} runs on {worker}{}", self.shard()),
            (Some("completed"), _) => format!("attempt {number} completed"),
            (Some("canceled"), _) => format!("attempt {number} let go: cancelled"),
            (Some(outcome), _) => format!("attempt {number} failed: {}", plain(outcome)),
        }
    }

    /// The first one is the only one, unless others follow.
    fn shard(&self) -> String {
        match self.data.get("shard").and_then(Value::as_u64) {
            None | Some(0) => String::new(),
            Some(shard) => format!(", shard {shard}"),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.data.get(key).and_then(Value::as_str)
    }
}

/// Names of reasons are words with underscores.
pub(super) fn plain(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_is_told_in_words_and_drives_no_terminal() {
        for (kind, data, words) in [
            ("status", json!({ "from": null, "to": "SUBMITTED", "reason": null }), "SUBMITTED"),
            (
                "status",
                json!({ "from": "RUNNING", "to": "FAILED", "reason": "worker_crashed" }),
                "RUNNING → FAILED: worker crashed",
            ),
            ("attempt", json!({ "attempt": 2 }), "attempt 2 begins"),
            (
                "attempt",
                json!({ "attempt": 2, "shard": 0, "worker": "py-1" }),
                "attempt 2 runs on py-1",
            ),
            (
                "attempt",
                json!({ "attempt": 2, "shard": 3, "worker": "py-4" }),
                "attempt 2 runs on py-4, shard 3",
            ),
            ("attempt", json!({ "attempt": 2, "outcome": "crashed" }), "attempt 2 failed: crashed"),
            ("attempt", json!({ "attempt": 2, "outcome": "completed" }), "attempt 2 completed"),
            ("progress", json!({ "done": 1, "total": 2 }), "progress: 50 %, 1 of 2"),
            ("message", json!({ "frame": 1 }), "says: {\"frame\":1}"),
            ("log", json!({ "level": "error", "text": "o\u{1b}h\n" }), "error: o\\u001bh"),
            ("later", json!([1]), "later: [1]"),
        ] {
            let at = "2026-01-02T03:04:05Z".to_owned();
            let line = Event { at, kind: kind.to_owned(), data }.line();
            assert_eq!(line, format!("2026-01-02T03:04:05.000Z  {words}\n"));
        }
    }
}
