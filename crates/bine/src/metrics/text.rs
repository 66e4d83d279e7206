//! Decides how figures are written down: the text format 0.0.4 of Prometheus.

use std::fmt::{Display, Write as _};

/// The media type of what is written here.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Families of figures, one behind the other.
#[derive(Default)]
pub(super) struct Text(String);

/// Figures of one name.
pub(super) struct Family<'t> {
    text: &'t mut Text,
    name: &'static str,
}

impl Text {
    /// Figures that only grow: their name ends in `_total`.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        debug_assert!(name.ends_with("_total"), "{name}");
        self.family(name, "counter", help)
    }

    /// Figures that rise and fall.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Waits or sizes in classes: each counts all that are not above it.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    pub(super) fn finish(self) -> String {
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
    /// The one figure of this name.
    pub(super) fn is(mut self, value: impl Display) {
        self.line("", &[], value);
    }

    /// One of several, told apart by labels.
    pub(super) fn with(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, value);
        self
    }

    /// A class of a histogram.
    pub(super) fn up_to(&mut self, bound: &str, count: u64) -> &mut Self {
        self.line("_bucket", &[("le", bound)], count);
        self
    }

    /// The end of a histogram.
    pub(super) fn in_all(&mut self, sum: f64, count: u64) {
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
