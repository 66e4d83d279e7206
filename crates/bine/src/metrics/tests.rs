//! Tests of the text format, by a parser that rejects all deviations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use proptest::prelude::*;

use crate::App;
use crate::prometheus::PrometheusText;

/// The parsed metrics: the kind of each family, and the value of each series by its name and
/// labels.
#[derive(Debug, Default)]
struct ParsedPage {
    kinds: BTreeMap<String, String>,
    series: BTreeMap<String, String>,
}

/// The names and values of labels, unescaped.
type Labels = Vec<(String, String)>;

/// Parses a page in text format 0.0.4, and rejects all deviations.
fn read(text: &str) -> Result<ParsedPage, String> {
    let mut parsed = ParsedPage::default();
    let (mut documented, mut current, mut ended) =
        (BTreeSet::new(), String::new(), BTreeSet::new());
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in text.lines() {
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        if let Some(help) = line.strip_prefix("# HELP ") {
            let Some((name, words)) = help.split_once(' ') else { return wrong("no words") };
            unescaped(words, false)?;
            if !is_name(name, true) || !documented.insert(name.to_owned()) {
                return wrong("a second HELP, or no name");
            }
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = kind.split_once(' ') else { return wrong("no type") };
            let is_known = ["counter", "gauge", "histogram"].contains(&kind);
            if !is_known || !documented.contains(name) || !ended.insert(name.to_owned()) {
                return wrong("a TYPE that is unknown, not behind its HELP, or comes again");
            }
            name.clone_into(&mut current);
            parsed.kinds.insert(current.clone(), kind.to_owned());
        } else {
            let end = line.find(['{', ' ']).ok_or_else(|| format!("no value: {line}"))?;
            let name = &line[..end];
            let is_histogram = parsed.kinds.get(&current).is_some_and(|kind| kind == "histogram");
            let behind = name.strip_prefix(&*current);
            let fits = match behind {
                Some("") => !is_histogram,
                Some("_bucket" | "_sum" | "_count") => is_histogram,
                _ => false,
            };
            if !fits || !is_name(name, true) {
                return wrong("a series outside of its family");
            }
            let value = labels(&line[end..])?.1.strip_prefix(' ').unwrap_or_default();
            if value.parse::<f64>().is_err() {
                return wrong("no number");
            }
            let series =
                line[..line.len() - line.rsplit(' ').next().map_or(0, str::len)].to_owned();
            if parsed.series.insert(series, value.to_owned()).is_some() {
                return wrong("a series that was there");
            }
        }
    }
    Ok(parsed)
}

/// Parses the labels. Also returns the text that follows.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let Some(mut rest) = text.strip_prefix('{') else { return Ok((Vec::new(), text)) };
    let mut labels = Labels::new();
    loop {
        let (name, behind) = rest.split_once("=\"").ok_or("a label without a value")?;
        let is_known = labels.iter().any(|(known, _)| known == name);
        if !is_name(name, false) || is_known {
            return Err(format!("no name of a label, or twice: {name}"));
        }
        let mut is_escaped = false;
        let end = behind.find(|letter| {
            let ends = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            ends
        });
        let end = end.ok_or("a value without its end")?;
        labels.push((name.to_owned(), unescaped(&behind[..end], true)?));
        match behind[end + 1..].split_at_checked(1) {
            Some((",", more)) => rest = more,
            Some(("}", behind)) => return Ok((labels, behind)),
            _ => return Err("labels without their end".to_owned()),
        }
    }
}

fn unescaped(text: &str, is_quoted: bool) -> Result<String, String> {
    let mut own = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        own.push(match letter {
            '\\' => match letters.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if is_quoted => '"',
                other => return Err(format!("an escape that there is not: {other:?}")),
            },
            letter => letter,
        });
    }
    Ok(own)
}

fn is_name(name: &str, may_have_colons: bool) -> bool {
    let fits = |letter: char| {
        letter.is_ascii_alphanumeric() || letter == '_' || may_have_colons && letter == ':'
    };
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[test]
fn writes_the_prometheus_text_format() {
    let mut text = PrometheusText::default();
    text.counter("a_total", "One\\two\nthree.").is(7);
    text.gauge("b", "\"Quoted\".").with(&[("x", "1"), ("y", "a\"\\\n")], 0.5).with(&[], 2);
    text.histogram("c_seconds", "Waits.").up_to("0.1", 3).total(0.25, 4);
    let written = text.finish();
    assert_eq!(
        written,
        "# HELP a_total One\\\\two\\nthree.\n# TYPE a_total counter\na_total 7\n\
         # HELP b \"Quoted\".\n# TYPE b gauge\nb{x=\"1\",y=\"a\\\"\\\\\\n\"} 0.5\nb 2\n\
         # HELP c_seconds Waits.\n# TYPE c_seconds histogram\nc_seconds_bucket{le=\"0.1\"} 3\n\
         c_seconds_bucket{le=\"+Inf\"} 4\nc_seconds_sum 0.25\nc_seconds_count 4\n"
    );
    let parsed = read(&written).unwrap();
    assert_eq!(parsed.kinds.len(), 3);
    assert_eq!(parsed.series["a_total "], "7");
}

#[test]
fn the_parser_of_tests_rejects_invalid_pages() {
    for wrong in [
        "a 1\n",
        "# HELP a b\n# TYPE a counter\na 1",
        "# TYPE a counter\n",
        "# HELP a b\n# TYPE a counter\na 1\na 2\n",
        "# HELP a b\n# TYPE a counter\nb 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"1\" 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"1\",x=\"2\"} 1\n",
        "# HELP a b\n# TYPE a counter\na{1=\"1\"} 1\n",
        "# HELP a b\n# TYPE a counter\na one\n",
        "# HELP a b\n# TYPE a wheel\na 1\n",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

/// The response of a metrics endpoint.
fn fetch(path: &Path, target: &str) -> String {
    let mut peer = UnixStream::connect(path).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(peer, "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    peer.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn program_is_not_ready_before_its_start_functions_return() {
    let path = std::env::temp_dir().join(format!("bine-ready-{}", std::process::id()));
    let (sender, receiver) = channel();
    let own = path.clone();
    let run = move || sender.send([fetch(&own, "/health"), fetch(&own, "/ready")]).unwrap();
    let app = App::new().on_start(run);
    let metrics = format!("unix:{}", path.display());
    let arguments = [
        &["--listen", "127.0.0.1:0", "--control", "off", "--root", "src"],
        &["--metrics", &*metrics][..],
    ]
    .concat();
    let _running = app.open_by_itself(&arguments).unwrap();
    let [health, ready] = receiver.recv().unwrap();
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("not begun"), "{ready}");
    assert!(fetch(&path, "/ready").starts_with("HTTP/1.1 200"));
}

proptest! {
    #[test]
    fn escapes_and_parses_any_label(labels in prop::collection::vec(any::<String>(), 1..4), value: u64) {
        let names = ["a", "b", "c"];
        let given: Vec<_> = names.into_iter().zip(labels.iter().map(String::as_str)).collect();
        let mut text = PrometheusText::default();
        text.gauge("g", &labels[0]).with(&given, value);
        // Only `\n` ends a line; other line separators are ordinary letters.
        let written = text.finish();
        let line = written.trim_end_matches('\n').rsplit('\n').next().unwrap();
        let (read, behind) = self::labels(line.strip_prefix('g').unwrap()).unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (&**name, &**value)).collect();
        prop_assert_eq!(read, given);
        prop_assert_eq!(behind, format!(" {value}"));
    }
}
