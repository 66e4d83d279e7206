//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// The media type of the format.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metric families.
#[derive(Default)]
pub(crate) struct PrometheusText(String);

/// A family: the metrics of one name.
pub(crate) struct Family<'t> {
    text: &'t mut PrometheusText,
    name: &'static str,
}

impl PrometheusText {
    /// Starts a counter, whose value only grows. Its name ends in `_total`.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        debug_assert!(name.ends_with("_total"), "{name}");
        self.family(name, "counter", help)
    }

    /// Starts a gauge, whose value may rise and fall.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Starts a histogram of times or sizes. Each bucket counts all values up to its bound.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let _ = write!(self.0, "# HELP {name} ");
        self.escaped(help, false);
        let _ = writeln!(self.0, "\n# TYPE {name} {kind}");
        Family { text: self, name }
    }

    fn escaped(&mut self, text: &str, is_quoted: bool) {
        for letter in text.chars() {
            match letter {
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '"' if is_quoted => self.0.push_str("\\\""),
                _ => self.0.push(letter),
            }
        }
    }
}

impl Family<'_> {
    /// Writes the only metric of this family.
    pub(crate) fn is(mut self, value: impl Display) {
        self.line("", &[], value);
    }

    /// Writes one of several metrics, distinguished by labels.
    pub(crate) fn with(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, value);
        self
    }

    /// Writes a bucket of a histogram.
    pub(crate) fn up_to(&mut self, bound: &str, count: u64) -> &mut Self {
        self.line("_bucket", &[("le", bound)], count);
        self
    }

    /// Writes the end of a histogram: the bucket of all values, the sum and the count.
    pub(crate) fn total(&mut self, sum: f64, count: u64) {
        self.line("_bucket", &[("le", "+Inf")], count);
        self.line("_sum", &[], sum);
        self.line("_count", &[], count);
    }

    // Writing into a String cannot fail.
    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text.0, "{}{suffix}", self.name);
        for (place, (name, value)) in labels.iter().enumerate() {
            let _ = write!(self.text.0, "{}{name}=\"", if place == 0 { '{' } else { ',' });
            self.text.escaped(value, true);
            self.text.0.push('"');
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text.0, "{close} {value}");
    }
}
