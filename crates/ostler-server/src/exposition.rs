//! The text format of Prometheus: families with their help and type, samples with their labels.
//! It knows nothing of pools.

use std::fmt::Write as _;

use ostler_runtime::Histogram;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Samples that follow belong to this family. All of a family stand together.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        let kind = kind.name();
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self.family = name;
    }

    pub fn sample(&mut self, labels: Labels<'_>, value: f64) {
        self.line("", labels, None, value);
    }

    pub fn count(&mut self, labels: Labels<'_>, value: u64) {
        self.sample(labels, value as f64);
    }

    pub fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        for (bound, count) in histogram.cumulative() {
            self.line("_bucket", labels, Some(&bound.to_string()), count as f64);
        }
        let count = histogram.count() as f64;
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, histogram.sum().as_secs_f64());
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: f64) {
        self.text.push_str(self.family);
        self.text.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        for (index, (name, value)) in labels.iter().copied().chain(bound).enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{name}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() || bound.is_some() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    pub fn finish(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_stand_under_their_family() {
        let mut exposition = Exposition::default();
        exposition.family("ostler_up", Kind::Gauge, "Whether it runs.");
        exposition.sample(&[], 1.0);
        exposition.count(&[("pool", "a\"b\\c\nd"), ("state", "x")], 3);
        let wanted = "# HELP ostler_up Whether it runs.\n# TYPE ostler_up gauge\nostler_up 1\n\
                      ostler_up{pool=\"a\\\"b\\\\c\\nd\",state=\"x\"} 3\n";
        assert_eq!(exposition.finish(), wanted);
    }

    #[test]
    fn a_histogram_has_rising_buckets_a_sum_and_a_count() {
        let mut histogram = Histogram::default();
        histogram.note(Duration::from_millis(2));
        histogram.note(Duration::from_secs(100));
        let mut exposition = Exposition::default();
        exposition.family("ostler_t_seconds", Kind::Histogram, "Time.");
        exposition.histogram(&[("pool", "p")], &histogram);
        let text = exposition.finish();
        for line in [
            "ostler_t_seconds_bucket{pool=\"p\",le=\"0.001\"} 0",
            "ostler_t_seconds_bucket{pool=\"p\",le=\"0.0025\"} 1",
            "ostler_t_seconds_bucket{pool=\"p\",le=\"60\"} 1",
            "ostler_t_seconds_bucket{pool=\"p\",le=\"+Inf\"} 2",
            "ostler_t_seconds_sum{pool=\"p\"} 100.002",
            "ostler_t_seconds_count{pool=\"p\"} 2",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
    }
}
