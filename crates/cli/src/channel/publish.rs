//! Publishes messages from the command line: one argument, all of standard input, or one message
//! per line.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::ChannelArguments;
use super::server::{Method, Server};

/// The channels and properties that all messages of a call share.
struct Template<'a> {
    channels: &'a [String],
    /// The properties as JSON members, such as `"type":"..",`.
    members: String,
    is_json: bool,
}

/// Limits of the server: the length of a body (`Limits::body`), and the messages of a batch.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;
const MAX_BATCH_MESSAGES: usize = 1000;

/// Publishes the messages that the arguments describe, and prints the cursor of each message.
///
/// # Errors
///
/// The input cannot be read, or the server refuses a message.
pub(super) fn publish(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    let Some((data, channels)) =
        arguments.positional.split_last().filter(|(_, names)| !names.is_empty())
    else {
        return Err("publish needs NAME... and DATA (- reads DATA from standard input)".to_owned());
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
    let is_json = content_type.is_some_and(|media_type| media_type.starts_with("application/json"));
    let template = Template { channels, members, is_json };
    if arguments.has("--lines") {
        if data != "-" || arguments.has("--id=") {
            return Err("--lines needs - as DATA, and excludes --id".to_owned());
        }
        return template.publish_lines(server, io::stdin().lock());
    }
    if data != "-" {
        return send(server, &[template.message(data)?]);
    }
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_MESSAGE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read standard input: {error}"))?;
    if text.len() as u64 > MAX_MESSAGE_BYTES {
        return Err(
            "a message is at most 1 MiB long; use --lines to publish line by line".to_owned()
        );
    }
    // `echo` ends its output with a newline that is not part of the message.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    send(server, &[template.message(text)?])
}

impl Template<'_> {
    /// Publishes each line as a message, in batches of the lines that are available.
    fn publish_lines(&self, server: &Server, input: impl Read) -> Result<(), String> {
        let mut input = BufReader::with_capacity(64 << 10, input);
        // The number of the current line, and of the first line of the batch.
        let (mut number, mut begin) = (0_u64, 0);
        let (mut batch, mut line) = (Vec::new(), String::new());
        loop {
            number += 1;
            line.clear();
            let read = (&mut input).take(MAX_MESSAGE_BYTES + 1).read_line(&mut line);
            let read = read.map_err(|error| format!("line {number}: cannot be read: {error}"))?;
            if read as u64 > MAX_MESSAGE_BYTES {
                return Err(format!("line {number} is longer than 1 MiB"));
            }
            let text = line.strip_suffix('\n').unwrap_or(&line);
            if !text.is_empty() {
                if batch.is_empty() {
                    begin = number;
                }
                let message = self.message(text);
                batch.push(message.map_err(|reason| format!("line {number}: {reason}"))?);
            }
            // A slow writer's line is published without waiting for its next one.
            let has_line = input.buffer().contains(&b'\n');
            if !batch.is_empty() && (read == 0 || !has_line || batch.len() == MAX_BATCH_MESSAGES) {
                let sent = send(server, &batch);
                sent.map_err(|reason| {
                    format!("lines from {begin} on were not published: {reason}")
                })?;
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
            let value: &RawValue = serde_json::from_str(data).map_err(|error| {
                format!("the data is not JSON, although --type says so: {error}")
            })?;
            value.get().to_owned()
        } else {
            Value::from(data).to_string()
        };
        Ok(format!("{{\"channels\":{channels},{}\"data\":{data}}}", self.members))
    }
}

/// Publishes a batch as a whole, and prints the cursors.
fn send(server: &Server, batch: &[String]) -> Result<(), String> {
    let body = format!("[{}]", batch.join(","));
    let fields = [("Content-Type", "application/json")];
    let response = server.send(Method::Post, "/channels", &fields, body.as_bytes());
    let response = response.map_err(|failure| failure.to_string())?;
    let results: Vec<Value> = serde_json::from_slice(&response.body)
        .map_err(|error| format!("cannot parse the answer of {}: {error}", server.address()))?;
    let mut out = io::stdout().lock();
    for result in results {
        let cursor = result["cursor"].as_str().unwrap_or_default();
        let repeated = if result["repeated"] == true { " repeated" } else { "" };
        writeln!(out, "{cursor}{repeated}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_any_message_as_json() {
        let channels = ["a\"b".to_owned(), "c".to_owned()];
        let template =
            Template { channels: &channels, members: "\"id\":\"1\",".to_owned(), is_json: false };
        assert_eq!(
            template.message("say \"x\"\n").unwrap(),
            r#"{"channels":["a\"b","c"],"id":"1","data":"say \"x\"\n"}"#
        );
        let template = Template { members: String::new(), is_json: true, ..template };
        let number = "{\"n\": 12345678901234567890123}";
        assert!(template.message(number).unwrap().ends_with(&format!("\"data\":{number}}}")));
        assert!(template.message("{").is_err());
    }
}
