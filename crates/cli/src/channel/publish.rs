//! Decides how messages come from the command line into channels: one text, all of standard input, or a line each.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::Arguments;
use super::server::{Server, Way};

/// What goes with the data of a message.
struct Form<'a> {
    channels: &'a [String],
    /// `"type":"..",` and its like, as JSON.
    members: String,
    is_json: bool,
}

/// A body has no more (`Limits::body`), and a batch no more messages.
const MOST_BYTES: u64 = 1 << 20;
const MOST_LINES: usize = 1000;

/// Publishes what the words and options say, and prints the cursor of each message.
///
/// # Errors
///
/// It cannot be read, or is not taken.
pub(super) fn publish(server: &Server, arguments: &Arguments) -> Result<(), String> {
    let Some((data, channels)) =
        arguments.words.split_last().filter(|(_, names)| !names.is_empty())
    else {
        return Err("publish what, and where? NAME... DATA, or - to read it".to_owned());
    };
    let content_type = arguments.value("--type=");
    let mut members = String::new();
    for (name, value) in [
        ("type", content_type),
        ("event", arguments.value("--event=")),
        ("id", arguments.value("--id=")),
    ] {
        if let Some(value) = value {
            // Writing into a String cannot fail.
            let _ = write!(members, "\"{name}\":{},", Value::from(value));
        }
    }
    let is_json = content_type.is_some_and(|own| own.starts_with("application/json"));
    let form = Form { channels, members, is_json };
    if arguments.has("--lines") {
        if data != "-" || arguments.has("--id=") {
            return Err("--lines goes with - for standard input, and not with --id".to_owned());
        }
        return form.lines(server, io::stdin().lock());
    }
    if data != "-" {
        return send(server, &[form.message(data)?]);
    }
    let mut text = String::new();
    let read = io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read standard input: {error}"))?;
    if text.len() as u64 > MOST_BYTES {
        return Err("a message has a megabyte at most; --lines publishes a line each".to_owned());
    }
    // What `echo` says ends with a line's end that nobody means.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    send(server, &[form.message(text)?])
}

impl Form<'_> {
    /// A line each, as many at once as are there.
    fn lines(&self, server: &Server, input: impl Read) -> Result<(), String> {
        let mut input = BufReader::with_capacity(64 << 10, input);
        // The line at hand, and the first that is not sent.
        let (mut number, mut begin) = (0_u64, 0);
        let (mut batch, mut line) = (Vec::new(), String::new());
        loop {
            number += 1;
            line.clear();
            let read = (&mut input).take(MOST_BYTES + 1).read_line(&mut line);
            let read = read.map_err(|error| format!("line {number}: cannot be read: {error}"))?;
            if read as u64 > MOST_BYTES {
                return Err(format!("line {number} has more than a megabyte"));
            }
            let text = line.strip_suffix('\n').unwrap_or(&line);
            if !text.is_empty() {
                if batch.is_empty() {
                    begin = number;
                }
                let message = self.message(text);
                batch.push(message.map_err(|why| format!("line {number}: {why}"))?);
            }
            // Whoever writes slowly is not kept waiting for the next line.
            let has_line = input.buffer().contains(&b'\n');
            if !batch.is_empty() && (read == 0 || !has_line || batch.len() == MOST_LINES) {
                let sent = send(server, &batch);
                sent.map_err(|why| format!("not published from line {begin} on: {why}"))?;
                batch.clear();
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    fn message(&self, data: &str) -> Result<String, String> {
        let channels = Value::from(self.channels);
        let data = if self.is_json {
            let value: &RawValue = serde_json::from_str(data)
                .map_err(|error| format!("this is no JSON, which --type says it is: {error}"))?;
            value.get().to_owned()
        } else {
            Value::from(data).to_string()
        };
        Ok(format!("{{\"channels\":{channels},{}\"data\":{data}}}", self.members))
    }
}

/// Has a batch taken as a whole, and prints where.
fn send(server: &Server, batch: &[String]) -> Result<(), String> {
    let body = format!("[{}]", batch.join(","));
    let fields = [("Content-Type", "application/json")];
    let told = server.send(Way::Post, "/channels", &fields, body.as_bytes());
    let told = told.map_err(|failure| failure.to_string())?;
    let each: Vec<Value> = serde_json::from_slice(&told.body)
        .map_err(|error| format!("{} answers in no known way: {error}", server.address()))?;
    let mut out = io::stdout().lock();
    for taken in each {
        let cursor = taken["cursor"].as_str().unwrap_or_default();
        let repeated = if taken["repeated"] == true { " repeated" } else { "" };
        writeln!(out, "{cursor}{repeated}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_json_whatever_is_in_it() {
        let channels = ["a\"b".to_owned(), "c".to_owned()];
        let form =
            Form { channels: &channels, members: "\"id\":\"1\",".to_owned(), is_json: false };
        assert_eq!(
            form.message("say \"x\"\n").unwrap(),
            r#"{"channels":["a\"b","c"],"id":"1","data":"say \"x\"\n"}"#
        );
        let form = Form { members: String::new(), is_json: true, ..form };
        let number = "{\"n\": 12345678901234567890123}";
        assert!(form.message(number).unwrap().ends_with(&format!("\"data\":{number}}}")));
        assert!(form.message("{").is_err());
    }
}
