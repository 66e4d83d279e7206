//! The file of a trace: a JSON array of complete events, as the "Trace Event Format" of Chromium
//! describes it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// One span while a thread has entered it.
pub(super) struct SpanTimes<'s> {
    pub(super) name: &'s str,
    /// The target of the span: the part of the program that has it.
    pub(super) target: &'s str,
    /// The name of the route or the service, if it is known.
    pub(super) route: Option<&'s str>,
    /// A number for each thread.
    pub(super) thread: u64,
    /// When it was entered, since the begin of the recording.
    pub(super) began: Duration,
    pub(super) took: Duration,
}

/// A file of spans, which ends after a number of them.
pub(super) struct TraceFile<W: Write = BufWriter<File>> {
    out: W,
    written: u64,
    most: u64,
}

impl TraceFile {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub(super) fn create(path: &Path, most: u64) -> io::Result<Self> {
        Ok(Self::new(BufWriter::new(File::create(path)?), most))
    }
}

impl<W: Write> TraceFile<W> {
    const fn new(out: W, most: u64) -> Self {
        Self { out, written: 0, most }
    }

    /// Whether the file has all its spans.
    pub(super) const fn is_full(&self) -> bool {
        self.written >= self.most
    }

    /// Writes one span.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn add(&mut self, span: &SpanTimes<'_>) -> io::Result<()> {
        let SpanTimes { name, target, route, thread, began, took } = span;
        let start = if self.written == 0 { "[\n" } else { ",\n" };
        let event = serde_json::json!({
            "name": name,
            "cat": target,
            "ph": "X",
            "ts": began.as_nanos() as f64 / 1000.0,
            "dur": took.as_nanos() as f64 / 1000.0,
            "pid": 1,
            "tid": thread,
            "args": route.map_or_else(|| serde_json::json!({}), |route| serde_json::json!({ "route": route })),
        });
        write!(self.out, "{start}{event}")?;
        self.written += 1;
        Ok(())
    }

    /// Writes the end. Returns the number of spans.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let end = if self.written == 0 { "[]\n" } else { "\n]\n" };
        self.out.write_all(end.as_bytes())?;
        self.out.flush()?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_an_array_of_complete_events() {
        let mut bytes = Vec::new();
        let mut file = TraceFile::new(&mut bytes, 2);
        let mut span = SpanTimes {
            name: "handler",
            target: "bine::stage",
            route: Some("shop::\"cart\""),
            thread: 3,
            began: Duration::from_nanos(1_500),
            took: Duration::from_micros(20),
        };
        file.add(&span).unwrap();
        assert!(!file.is_full());
        span.route = None;
        file.add(&span).unwrap();
        assert!(file.is_full());
        assert_eq!(file.finish().unwrap(), 2);
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            json[0],
            serde_json::json!({
                "name": "handler", "cat": "bine::stage", "ph": "X", "ts": 1.5, "dur": 20.0,
                "pid": 1, "tid": 3, "args": { "route": "shop::\"cart\"" },
            })
        );
        assert_eq!(json[1]["args"], serde_json::json!({}));
    }

    #[test]
    fn writes_an_empty_array_without_spans() {
        let mut bytes = Vec::new();
        assert_eq!(TraceFile::new(&mut bytes, 1).finish().unwrap(), 0);
        assert_eq!(bytes, b"[]\n");
    }
}
