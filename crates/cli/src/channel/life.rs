//! Decides how a channel is made, renewed and closed from the command line, and what is told of it.

use serde_json::Value;

use super::arguments::{Arguments, time};
use super::server::{ROOT, Server, Told, Way, encoded, field, resource};
use super::terminal::harmless;

/// What a channel can be told when it is made.
pub(super) const MAKING: [&str; 8] = [
    "--type=",
    "--ttl=",
    "--publishers",
    "--keep=",
    "--keep-bytes=",
    "--keep-for=",
    "--keep-all",
    "--durability=",
];

/// Makes a channel, of the name that is said or of one that nobody guesses.
///
/// # Errors
///
/// What was said makes no sense, or the server does not do it.
pub(super) fn create(server: &Server, arguments: &Arguments) -> Result<(), String> {
    let content_type = arguments.value("--type=").unwrap_or("text/plain; charset=utf-8");
    let mut fields = vec![("Content-Type", content_type.to_owned())];
    fields.extend(ending(arguments)?);
    let mut kept = Vec::new();
    for (option, word) in [("--keep=", "messages"), ("--keep-bytes=", "bytes")] {
        if let Some(value) = arguments.value(option) {
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            let number = number.ok_or_else(|| format!("`{value}` is no number of {word}"))?;
            kept.push(format!("{word}={number}"));
        }
    }
    if let Some(age) = arguments.value("--keep-for=") {
        kept.push(format!("age={}", time(age)?.as_secs()));
    }
    if arguments.has("--keep-all") {
        if !kept.is_empty() {
            return Err("--keep-all goes without --keep, --keep-bytes and --keep-for".to_owned());
        }
        kept.push("unlimited".to_owned());
    }
    if !kept.is_empty() {
        fields.push(("Stream-Retention", kept.join(", ")));
    }
    if let Some(durability) = arguments.value("--durability=") {
        fields.push(("Stream-Durability", durability.to_owned()));
    }
    let (way, target) = match &arguments.words[..] {
        [] => (Way::Post, ROOT.to_owned()),
        _ => (Way::Put, resource(only(arguments)?)),
    };
    tell(server, way, &target, &fields, arguments)
}

/// Puts off when a channel goes by itself.
///
/// # Errors
///
/// What was said makes no sense, or the server does not do it.
pub(super) fn renew(server: &Server, arguments: &Arguments) -> Result<(), String> {
    tell(server, Way::Patch, &resource(only(arguments)?), &ending(arguments)?, arguments)
}

/// Lets a channel take no more, and prints its last cursor.
///
/// # Errors
///
/// The server does not do it.
pub(super) fn close(server: &Server, arguments: &Arguments) -> Result<(), String> {
    let name = only(arguments)?;
    let told = server.send(Way::Post, &resource(name), &[("Stream-Closed", "true")], b"");
    let told = told.map_err(|failure| failure.to_string())?;
    println!("{}", field(&told.head, "Stream-Next-Offset").unwrap_or_default());
    Ok(())
}

/// Removes a channel with all that it holds.
///
/// # Errors
///
/// The server does not do it.
pub(super) fn delete(server: &Server, arguments: &Arguments) -> Result<(), String> {
    let name = only(arguments)?;
    let told = server.send(Way::Delete, &resource(name), &[], b"");
    told.map(drop).map_err(|failure| failure.to_string())
}

/// Prints channels, each with the bytes and the messages that it holds.
///
/// # Errors
///
/// What was said makes no sense, or the server does not tell.
pub(super) fn list(server: &Server, arguments: &Arguments) -> Result<(), String> {
    if !arguments.words.is_empty() {
        return Err("`list` takes no name; --after NAME says where it begins".to_owned());
    }
    let words = [("by", "--by="), ("limit", "--limit="), ("after", "--after=")];
    let words = words.iter().filter_map(|(word, option)| {
        Some(format!("{word}={}", encoded(arguments.value(option)?, b"")))
    });
    let target = format!("{ROOT}?{}", words.collect::<Vec<_>>().join("&"));
    let told = server.get(&target).map_err(|failure| failure.to_string())?;
    let each: Vec<Value> = serde_json::from_slice(&told.body)
        .map_err(|error| format!("{} answers in no known way: {error}", server.address()))?;
    for one in each {
        let name = harmless(one["channel"].as_str().unwrap_or_default()).into_owned();
        let by = harmless(one["publisher"].as_str().unwrap_or("-")).into_owned();
        println!(
            "{:>14} {:>10} {by} {name}",
            one["bytes"].to_string(),
            one["messages"].to_string()
        );
    }
    Ok(())
}

/// When a channel is to go by itself, in fields.
fn ending(arguments: &Arguments) -> Result<Vec<(&'static str, String)>, String> {
    let mut fields = Vec::new();
    if let Some(ttl) = arguments.value("--ttl=") {
        fields.push(("Stream-TTL", time(ttl)?.as_secs().to_string()));
    }
    if arguments.has("--publishers") {
        if fields.is_empty() {
            return Err("--publishers goes with --ttl, which says how long".to_owned());
        }
        fields.push(("Stream-TTL-Of", "publishers".to_owned()));
    }
    Ok(fields)
}

/// Has it done, and prints name, cursor and end of the channel.
fn tell(
    server: &Server,
    way: Way,
    target: &str,
    fields: &[(&str, String)],
    arguments: &Arguments,
) -> Result<(), String> {
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let told = server.send(way, target, &fields, b"").map_err(|failure| failure.to_string())?;
    let said: Value = serde_json::from_slice(&told.body).unwrap_or_default();
    let name = said["channel"].as_str().or(arguments.words.first().map(String::as_str));
    let name = name.ok_or("the server's answer has no name")?;
    let cursor = field(&told.head, "Stream-Next-Offset").unwrap_or_default();
    println!("{name} {cursor} {}", end(&told, said["expires"].as_str()));
    Ok(())
}

/// When a channel goes by itself, for people.
fn end(told: &Told, expires: Option<&str>) -> String {
    let is_publishers = field(&told.head, "Stream-TTL-Of") == Some("publishers");
    let last = if is_publishers { "publication" } else { "read or write" };
    let at = expires.or(field(&told.head, "Stream-Expires-At"));
    match (at, field(&told.head, "Stream-TTL")) {
        (None, None) => "stays".to_owned(),
        (Some(at), None) => format!("goes at {at}"),
        (None, Some(seconds)) => format!("goes {seconds} seconds after the last {last}"),
        (Some(at), Some(seconds)) => {
            format!("goes at {at}, {seconds} seconds after the last {last}")
        }
    }
}

/// The one channel that a command is about.
fn only(arguments: &Arguments) -> Result<&str, String> {
    match &arguments.words[..] {
        [name] => Ok(name),
        _ => Err("one channel at a time".to_owned()),
    }
}
