//! Decides what a request that follows channels has asked for: which, from where on, and how.

use std::str::FromStr;

use bine_http::{Head, query, websocket};
use bine_push::{Cursor, Holes, Start, Until};

use super::batch::MOST;
use super::engine::now;
use super::instant;
use super::watch::{Manner, Watch};

/// Messages at once, if nothing is said.
const LIMIT: usize = 100;
/// Seconds that a poll waits, if nothing is said, and at most (RFC 6202 section 5.5: proxies give up early).
const WAIT: u64 = 25;
const LONGEST_WAIT: u64 = 55;

/// What somebody wants to follow, and from where on.
pub(super) fn follow(head: &Head<'_>) -> Result<(Watch, Start), String> {
    let manner = manner(head.field_text("Accept").unwrap_or_default());
    let mut watch = Watch {
        channels: Box::default(),
        manner,
        holes: Holes::Refuse,
        until: Until::Open,
        limit: LIMIT,
        wait: WAIT * 1000,
        live: None,
    };
    let (mut channels, mut start): (Vec<Box<str>>, _) = (Vec::new(), None);
    for (name, value) in query::pairs(head.query().unwrap_or_default()) {
        let value = value.decode().map_err(|_| "the query is not encoded as it should be")?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
        let name = name.decode().map_err(|_| "the query is not encoded as it should be")?;
        match &*name {
            "c" => channels.push((&*value).into()),
            "after" => start = Some(place(&value)?),
            "before" => {
                watch.until = match place(&value)? {
                    Start::After(cursor) => Until::Cursor(cursor),
                    Start::Since(time) => Until::Time(time),
                    Start::Now => Until::Time(now()),
                    Start::Earliest => return Err("there is nothing before `earliest`".to_owned()),
                }
            }
            "limit" => watch.limit = (number()?.clamp(1, MOST as u64)) as usize,
            "wait" => watch.wait = number()?.min(LONGEST_WAIT) * 1000,
            "gap" if value == "allow" => watch.holes = Holes::Tell,
            // What EventSource of older browsers' libraries says in place of the field.
            "last_event_id" | "lastEventId" if start.is_none() => start = Some(place(&value)?),
            other => {
                return Err(format!("there is no `{other}`: c, after, before, limit, wait, gap"));
            }
        }
    }
    if let Some(last) = head.field_text("Last-Event-ID").filter(|last| !last.is_empty()) {
        start = Some(place(last)?);
    }
    if let Some(wait) = preferred_wait(head.field_text("Prefer").unwrap_or_default()) {
        watch.wait = wait.min(LONGEST_WAIT) * 1000;
    }
    if channels.is_empty() {
        return Err("which channels? Name each by `c`, like ?c=news&c=weather".to_owned());
    }
    watch.channels = channels.into();
    let usual = if watch.until == Until::Open { Start::Now } else { Start::Earliest };
    let start = start.unwrap_or(usual);
    if is_backward(start, watch.until) {
        return Err("`before` lies before `after`, so nothing is between; exchange them".to_owned());
    }
    Ok((watch, start))
}

/// Whether a range ends before it begins. A cursor and a time cannot be told apart without looking.
fn is_backward(start: Start, until: Until) -> bool {
    match (start, until) {
        (Start::After(start), Until::Cursor(end)) => start.epoch == end.epoch && end < start,
        (Start::Since(start), Until::Time(end)) => end < start,
        (Start::Now, Until::Time(end)) => end < now(),
        _ => false,
    }
}

/// Whether it means the view by WebSocket, be it in wrong words.
pub(super) fn asks_for_websocket(head: &Head<'_>) -> bool {
    !matches!(
        websocket::Upgrade::read(head),
        Err(websocket::Refusal::NotAsked | websocket::Refusal::Method)
    )
}

/// The first of the views that a peer takes.
fn manner(accept: &str) -> Manner {
    let known = accept.split(',').find_map(|range| match range.split(';').next()?.trim() {
        "application/json" => Some(Manner::Poll),
        "text/event-stream" => Some(Manner::Events),
        "application/x-ndjson" | "application/ndjson" => Some(Manner::Lines),
        "multipart/mixed" => Some(Manner::Parts),
        _ => None,
    });
    known.unwrap_or(Manner::Poll)
}

/// `Prefer: wait=10` (RFC 7240 section 4.3).
fn preferred_wait(prefer: &str) -> Option<u64> {
    let preferences = prefer.split([',', ';']);
    preferences
        .filter_map(|one| one.trim().strip_prefix("wait="))
        .find_map(|wait| wait.parse().ok())
}

/// A cursor, a word, or a time.
fn place(text: &str) -> Result<Start, String> {
    match text {
        "earliest" | "-1" => Ok(Start::Earliest),
        "now" => Ok(Start::Now),
        _ => match (Cursor::from_str(text), time(text)) {
            (Ok(cursor), _) => Ok(Start::After(cursor)),
            (Err(_), Some(time)) => Ok(Start::Since(time)),
            (Err(fault), None) => Err(format!(
                "`{text}` is no place: {fault}, or say earliest, now, a time like \
                 2026-11-20T21:00:00Z, or milliseconds since 1970"
            )),
        },
    }
}

/// Milliseconds since 1970, or RFC 3339. The `+` of a zone is a space in a query, if it is not encoded.
fn time(text: &str) -> Option<u64> {
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.or_else(|| instant::read(text)).or_else(|| instant::read(&text.replace(' ', "+")))
}
