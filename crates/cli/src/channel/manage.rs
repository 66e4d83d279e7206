//! Creates, renews, closes, deletes and lists channels from the command line.

use serde_json::Value;

use super::arguments::{ChannelArguments, parse_duration};
use super::server::{
    CHANNELS_PATH, Method, Response, Server, channel_path, field, percent_encoded,
};
use super::terminal::sanitize;

/// The options of `bine channel create`.
pub(super) const CREATE_OPTIONS: [&str; 8] = [
    "--type=",
    "--ttl=",
    "--publishers",
    "--keep=",
    "--keep-bytes=",
    "--keep-for=",
    "--keep-all",
    "--durability=",
];

/// Creates a channel with the given name, or with a random name that the server chooses.
///
/// # Errors
///
/// An option is invalid, or the server refuses.
pub(super) fn create(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    let content_type = arguments.value("--type=").unwrap_or("text/plain; charset=utf-8");
    let mut fields = vec![("Content-Type", content_type.to_owned())];
    fields.extend(expiry_fields(arguments)?);
    let mut retention = Vec::new();
    for (option, word) in [("--keep=", "messages"), ("--keep-bytes=", "bytes")] {
        if let Some(value) = arguments.value(option) {
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            let number =
                number.ok_or_else(|| format!("`{value}` is not a positive number of {word}"))?;
            retention.push(format!("{word}={number}"));
        }
    }
    if let Some(age) = arguments.value("--keep-for=") {
        retention.push(format!("age={}", parse_duration(age)?.as_secs()));
    }
    if arguments.has("--keep-all") {
        if !retention.is_empty() {
            return Err("--keep-all excludes --keep, --keep-bytes and --keep-for".to_owned());
        }
        retention.push("unlimited".to_owned());
    }
    if !retention.is_empty() {
        fields.push(("Stream-Retention", retention.join(", ")));
    }
    if let Some(durability) = arguments.value("--durability=") {
        fields.push(("Stream-Durability", durability.to_owned()));
    }
    let (method, target) = match &arguments.positional[..] {
        [] => (Method::Post, CHANNELS_PATH.to_owned()),
        _ => (Method::Put, channel_path(single_name(arguments)?)),
    };
    send_and_print(server, method, &target, &fields, arguments)
}

/// Extends the time to live of a channel.
///
/// # Errors
///
/// An option is invalid, or the server refuses.
pub(super) fn renew(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    send_and_print(
        server,
        Method::Patch,
        &channel_path(single_name(arguments)?),
        &expiry_fields(arguments)?,
        arguments,
    )
}

/// Closes a channel to further messages, and prints its last cursor.
///
/// # Errors
///
/// The server refuses.
pub(super) fn close(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    let name = single_name(arguments)?;
    let response =
        server.send(Method::Post, &channel_path(name), &[("Stream-Closed", "true")], b"");
    let response = response.map_err(|failure| failure.to_string())?;
    println!("{}", field(&response.headers, "Stream-Next-Offset").unwrap_or_default());
    Ok(())
}

/// Deletes a channel and its messages.
///
/// # Errors
///
/// The server refuses.
pub(super) fn delete(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    let name = single_name(arguments)?;
    let response = server.send(Method::Delete, &channel_path(name), &[], b"");
    response.map(drop).map_err(|failure| failure.to_string())
}

/// Prints channels, each with its size in bytes and its number of messages.
///
/// # Errors
///
/// An option is invalid, or the server refuses.
pub(super) fn list(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    if !arguments.positional.is_empty() {
        return Err("`list` takes no name; use --after NAME to begin behind a channel".to_owned());
    }
    let words = [("by", "--by="), ("limit", "--limit="), ("after", "--after=")];
    let words = words.iter().filter_map(|(word, option)| {
        Some(format!("{word}={}", percent_encoded(arguments.value(option)?, b"")))
    });
    let target = format!("{CHANNELS_PATH}?{}", words.collect::<Vec<_>>().join("&"));
    let response = server.get(&target).map_err(|failure| failure.to_string())?;
    let channels: Vec<Value> = serde_json::from_slice(&response.body)
        .map_err(|error| format!("cannot parse the answer of {}: {error}", server.address()))?;
    for channel in channels {
        let name = sanitize(channel["channel"].as_str().unwrap_or_default()).into_owned();
        let by = sanitize(channel["publisher"].as_str().unwrap_or("-")).into_owned();
        println!(
            "{:>14} {:>10} {by} {name}",
            channel["bytes"].to_string(),
            channel["messages"].to_string()
        );
    }
    Ok(())
}

/// Returns the header fields that set when a channel expires.
fn expiry_fields(arguments: &ChannelArguments) -> Result<Vec<(&'static str, String)>, String> {
    let mut fields = Vec::new();
    if let Some(ttl) = arguments.value("--ttl=") {
        fields.push(("Stream-TTL", parse_duration(ttl)?.as_secs().to_string()));
    }
    if arguments.has("--publishers") {
        if fields.is_empty() {
            return Err("--publishers needs --ttl".to_owned());
        }
        fields.push(("Stream-TTL-Of", "publishers".to_owned()));
    }
    Ok(fields)
}

/// Sends the request, and prints name, cursor and expiry of the channel.
fn send_and_print(
    server: &Server,
    method: Method,
    target: &str,
    fields: &[(&str, String)],
    arguments: &ChannelArguments,
) -> Result<(), String> {
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let response =
        server.send(method, target, &fields, b"").map_err(|failure| failure.to_string())?;
    let metadata: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let name = metadata["channel"].as_str().or(arguments.positional.first().map(String::as_str));
    let name = name.ok_or("the server's answer lacks the channel's name")?;
    let cursor = field(&response.headers, "Stream-Next-Offset").unwrap_or_default();
    println!("{name} {cursor} {}", expiry(&response, metadata["expires"].as_str()));
    Ok(())
}

/// Describes when a channel expires.
fn expiry(response: &Response, expires: Option<&str>) -> String {
    let extends_by_publishing = field(&response.headers, "Stream-TTL-Of") == Some("publishers");
    let last = if extends_by_publishing { "publication" } else { "read or write" };
    let at = expires.or(field(&response.headers, "Stream-Expires-At"));
    match (at, field(&response.headers, "Stream-TTL")) {
        (None, None) => "never expires".to_owned(),
        (Some(at), None) => format!("expires at {at}"),
        (None, Some(seconds)) => format!("expires {seconds} seconds after the last {last}"),
        (Some(at), Some(seconds)) => {
            format!("expires at {at}, {seconds} seconds after the last {last}")
        }
    }
}

/// Returns the only positional argument.
fn single_name(arguments: &ChannelArguments) -> Result<&str, String> {
    match &arguments.positional[..] {
        [name] => Ok(name),
        _ => Err("name one channel only".to_owned()),
    }
}
