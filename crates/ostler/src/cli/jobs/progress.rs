//! What a job says of how far it is. It may be any JSON; the usual ways to say it are understood, and
//! the rest is shown as it is.

use serde_json::{Map, Value};

/// Signs of a bar.
const WIDTH: usize = 24;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Progress {
    /// 0 to 1.
    share: Option<f64>,
    text: String,
}

impl Progress {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) => match number.as_f64().and_then(whole) {
                Some(share) => Self { share: Some(share), text: String::new() },
                None => Self { share: None, text: value.to_string() },
            },
            Value::String(text) => Self { share: None, text: text.clone() },
            Value::Object(members) => Self::of_members(members, value),
            Value::Array(items) => match &items[..] {
                [done, total] => Self::counted(done, total, value),
                _ => Self { share: None, text: value.to_string() },
            },
            _ => Self { share: None, text: value.to_string() },
        }
    }

    fn of_members(members: &Map<String, Value>, value: &Value) -> Self {
        let find = |names: &[&str]| names.iter().find_map(|name| members.get(*name));
        let number = |names: &[&str]| find(names).and_then(Value::as_f64);
        let text = find(&["message", "text", "stage", "step"]).and_then(Value::as_str);
        let done = find(&["done", "current", "completed"]);
        let mut found = match (done, find(&["total", "of"])) {
            (Some(done), Some(total)) => Self::counted(done, total, value),
            _ => {
                let percent = number(&["percent"]).map(|percent| percent / 100.0);
                let share = number(&["fraction", "share", "progress"]).or(percent).and_then(whole);
                Self { share, text: String::new() }
            }
        };
        match text {
            Some(text) if found.text.is_empty() => text.clone_into(&mut found.text),
            Some(text) => found.text = format!("{}, {text}", found.text),
            None if found == Self::default() => found.text = value.to_string(),
            None => {}
        }
        found
    }

    fn counted(done: &Value, total: &Value, value: &Value) -> Self {
        let share = done.as_f64().zip(total.as_f64()).filter(|(_, total)| *total > 0.0);
        match share.and_then(|(done, total)| whole(done / total)) {
            Some(share) => Self { share: Some(share), text: format!("{done} of {total}") },
            None => Self { share: None, text: value.to_string() },
        }
    }

    /// For a cell or a line: `42 %  resizing`.
    pub fn words(&self) -> String {
        match (self.percent(), self.text.as_str()) {
            (Some(percent), "") => format!("{percent} %"),
            (Some(percent), text) => format!("{percent} %, {text}"),
            (None, text) => text.to_owned(),
        }
    }

    /// The same with a bar, if it is known how far it is.
    pub fn bar(&self) -> String {
        let Some(share) = self.share else { return self.words() };
        let full = (share * WIDTH as f64) as usize;
        format!("[{}{}] {}", "#".repeat(full), "-".repeat(WIDTH - full), self.words())
    }

    fn percent(&self) -> Option<u8> {
        // Cut off: what is not done is never shown as done.
        self.share.map(|share| (share * 100.0 + 1e-9) as u8)
    }
}

fn whole(share: f64) -> Option<f64> {
    (0.0..=1.0).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_usual_ways_to_say_how_far_it_is_are_understood() {
        for (value, words) in [
            (json!(0.42), "42 %"),
            (json!(1), "100 %"),
            (json!(0.999), "99 %"),
            (json!(42), "42"),
            (json!("resizing"), "resizing"),
            (json!([3, 4]), "75 %, 3 of 4"),
            (json!({ "done": 1, "total": 8, "message": "frames" }), "12 %, 1 of 8, frames"),
            (json!({ "percent": 29, "stage": "mix" }), "29 %, mix"),
            (json!({ "fraction": 0.5 }), "50 %"),
            (json!({ "text": "soon" }), "soon"),
            (json!({ "epoch": 3 }), "{\"epoch\":3}"),
            (json!({ "done": 9, "total": 8 }), "{\"done\":9,\"total\":8}"),
            (json!([1, 0]), "[1,0]"),
            (json!(null), "null"),
        ] {
            assert_eq!(Progress::of(&value).words(), words, "{value}");
        }
    }

    #[test]
    fn a_bar_is_full_at_the_end_and_not_before() {
        let bar = |share: f64| Progress::of(&json!(share)).bar();
        assert_eq!(bar(0.0), "[------------------------] 0 %");
        assert_eq!(bar(0.5), "[############------------] 50 %");
        assert_eq!(bar(0.99), "[#######################-] 99 %");
        assert_eq!(bar(1.0), "[########################] 100 %");
        assert_eq!(Progress::of(&json!("x")).bar(), "x");
    }
}
