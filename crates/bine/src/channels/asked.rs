//! Decides what a request that follows channels has asked for: which, from where on, and how.

use std::str::FromStr;

use bine_http::{Head, query, websocket};
use bine_push::{Cursor, Holes, Start, Until};

use super::batch::MOST;
use super::engine::now;
use super::watch::{Manner, Watch};

/// Seconds that a poll waits at most (RFC 6202 section 5.5: proxies give up early).
pub(super) const LONGEST_WAIT: u64 = 55;

/// What somebody wants to follow, and from where on.
pub(super) fn follow(head: &Head<'_>) -> Result<(Watch, Start), String> {
    let (watch, start) = read(head, Watch::of(Box::default()), Query::Channels)?;
    if watch.channels.is_empty() {
        return Err("which channels? Name each by `c`, like ?c=news&c=weather".to_owned());
    }
    Ok((watch, start.unwrap_or(Start::Now)))
}

/// What somebody wants of what a page lets them follow; the query may hold words of the page's own.
pub(super) fn amend(head: &Head<'_>, watch: Watch) -> Result<(Watch, Option<Start>), String> {
    read(head, watch, Query::Page)
}

/// Whose a query is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Query {
    Channels,
    Page,
}

fn read(head: &Head<'_>, mut watch: Watch, whose: Query) -> Result<(Watch, Option<Start>), String> {
    if let Some(manner) = manner(head.field_text("Accept").unwrap_or_default()) {
        watch.manner = manner;
    }
    let (mut channels, mut start): (Vec<Box<str>>, _) = (Vec::new(), None);
    for (name, value) in query::pairs(head.query().unwrap_or_default()) {
        let value = value.decode().map_err(|_| "the query is not encoded as it should be")?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
        let name = name.decode().map_err(|_| "the query is not encoded as it should be")?;
        match &*name {
            "c" if whose == Query::Channels => channels.push((&*value).into()),
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
            // Read already by whoever looks who this is.
            "access_token" => {}
            "gap" if value == "allow" => watch.holes = Holes::Tell,
            // What EventSource of older browsers' libraries says in place of the field.
            "last_event_id" | "lastEventId" if start.is_none() => start = Some(place(&value)?),
            _ if whose == Query::Page => {}
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
    if whose == Query::Channels {
        watch.channels = channels.into();
    }
    Ok((watch, start))
}

/// Whether it means the view by WebSocket, be it in wrong words.
pub(super) fn asks_for_websocket(head: &Head<'_>) -> bool {
    !matches!(
        websocket::Upgrade::read(head),
        Err(websocket::Refusal::NotAsked | websocket::Refusal::Method)
    )
}

/// The first of the views that a peer takes.
fn manner(accept: &str) -> Option<Manner> {
    accept.split(',').find_map(|range| match range.split(';').next()?.trim() {
        "application/json" => Some(Manner::Poll),
        "text/event-stream" => Some(Manner::Events),
        "application/x-ndjson" | "application/ndjson" => Some(Manner::Lines),
        "multipart/mixed" => Some(Manner::Parts),
        _ => None,
    })
}

/// `Prefer: wait=10` (RFC 7240 section 4.3).
fn preferred_wait(prefer: &str) -> Option<u64> {
    let preferences = prefer.split([',', ';']);
    preferences
        .filter_map(|one| one.trim().strip_prefix("wait="))
        .find_map(|wait| wait.parse().ok())
}

/// A cursor, a word, or milliseconds since 1970.
fn place(text: &str) -> Result<Start, String> {
    match text {
        "earliest" | "-1" => Ok(Start::Earliest),
        "now" => Ok(Start::Now),
        _ => match (Cursor::from_str(text), text.parse::<u64>()) {
            (Ok(cursor), _) => Ok(Start::After(cursor)),
            (Err(_), Ok(time)) => Ok(Start::Since(time)),
            (Err(fault), Err(_)) => Err(format!(
                "`{text}` is no place: {fault}, or say earliest, now, or milliseconds since 1970"
            )),
        },
    }
}
