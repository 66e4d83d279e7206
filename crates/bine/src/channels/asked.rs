//! Decides what a request that follows channels has asked for: which, from where on, and how.

use std::str::FromStr;

use bine_http::{Head, Method, Status, query, websocket};
use bine_push::{Cursor, GapPolicy, Start, Until};

use super::batch::MOST;
use super::clock::now;
use super::instant;
use super::media_type::essence;
use super::place::Manner;
use super::watch::Watch;

/// Seconds that a poll waits at most (RFC 6202 section 5.5: proxies give up early).
pub(super) const LONGEST_WAIT: u64 = 55;
/// What the content of a QUERY is made of (RFC 10008), as `Accept-Query` says it.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";
/// Words of a form, at most: as many channels as may be followed at once, and some to spare.
const MOST_WORDS: u16 = 10_100;
/// Channels of which it is told at once who is present.
const MOST_PRESENT: usize = 64;
/// Bytes of a name that somebody is present by.
const NAME: usize = 64;

/// Why nobody can be told what they ask for.
#[derive(Debug)]
pub(super) struct Unclear(pub(super) Status, pub(super) String);

/// What somebody wants to follow, and from where on: by words of the address, and of a QUERY's content.
pub(super) fn follow(head: &Head<'_>, content: &[u8]) -> Result<Following, Unclear> {
    let is_query = head.method() == Method::Query;
    let form = if is_query { form(head, content)? } else { "" };
    let fault = if is_query { Status::UNPROCESSABLE_CONTENT } else { Status::BAD_REQUEST };
    let asked = read(head, form, Whose::Channels).and_then(Asked::complete);
    asked.map_err(|reason| Unclear(fault, reason))
}

/// What somebody wants of what a page lets them follow; the query may hold words of the page's own.
pub(super) fn amend(head: &Head<'_>, watch: Watch) -> Result<(Watch, Option<Start>), String> {
    read(head, "", Whose::Page)?.onto(watch)
}

/// Whose a query is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Channels,
    Page,
}

/// What the address, a form and the fields say.
fn read(head: &Head<'_>, form: &str, whose: Whose) -> Result<Asked, String> {
    let mut asked = Asked::default();
    asked.hear(query::pairs(head.query().unwrap_or_default()), whose)?;
    asked.hear(query::pairs_up_to(form, MOST_WORDS), whose)?;
    if let Some(last) = head.field_text("Last-Event-ID").filter(|last| !last.is_empty()) {
        asked.start = Some(place(last)?);
    }
    if let Some(wait) = preferred_wait(head.field_text("Prefer").unwrap_or_default()) {
        asked.wait = Some(wait);
    }
    asked.manner = manner(head.field_text("Accept").unwrap_or_default());
    Ok(asked)
}

/// The form that a QUERY's content is (RFC 10008 section 2).
fn form<'c>(head: &Head<'_>, content: &'c [u8]) -> Result<&'c str, Unclear> {
    let kind = head.field_text("Content-Type").map(essence);
    let unclear = |status, reason: &str| Err(Unclear(status, reason.to_owned()));
    match kind.as_deref() {
        Some(FORM) => {}
        None => {
            return unclear(
                Status::BAD_REQUEST,
                "Content-Type is missing: say what is asked as a form",
            );
        }
        Some(_) => {
            let reason = "a QUERY is a form here: Content-Type: application/x-www-form-urlencoded";
            return unclear(Status::UNSUPPORTED_MEDIA_TYPE, reason);
        }
    }
    let form = str::from_utf8(content).ok().filter(|form| {
        query::pairs_up_to(form, MOST_WORDS)
            .all(|(name, value)| name.decode().is_ok() && value.decode().is_ok())
    });
    form.ok_or_else(|| Unclear(Status::BAD_REQUEST, ENCODED.to_owned()))
}

/// What is wrong with text whose `%` lead nowhere.
const ENCODED: &str = "what is asked is not encoded as it should be: percent signs and UTF-8";

/// What was asked for, word by word.
#[derive(Debug, Default)]
struct Asked {
    channels: Vec<Box<str>>,
    manner: Option<Manner>,
    start: Option<Start>,
    until: Option<Until>,
    limit: Option<usize>,
    /// In seconds.
    wait: Option<u64>,
    may_miss: bool,
    /// Who they say they are.
    session: Option<Box<str>>,
    /// They want to know who is present, and nothing else.
    who: bool,
}

/// What somebody wants to follow.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Following {
    pub(super) watch: Watch,
    pub(super) start: Start,
    /// Who they say they are.
    pub(super) session: Option<Box<str>>,
    /// They want to know who is present, and nothing else.
    pub(super) who: bool,
}

impl Asked {
    fn hear(&mut self, mut words: query::Pairs<'_>, whose: Whose) -> Result<(), String> {
        for (name, value) in words.by_ref() {
            let (Ok(name), Ok(value)) = (name.decode(), value.decode()) else {
                return Err(ENCODED.to_owned());
            };
            let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
            match &*name {
                "c" if whose == Whose::Channels => self.channels.push((&*value).into()),
                "after" => self.start = Some(place(&value)?),
                "before" => {
                    self.until = Some(match place(&value)? {
                        Start::After(cursor) => Until::Cursor(cursor),
                        Start::Since(time) => Until::Time(time),
                        Start::Now => Until::Time(now()),
                        Start::Earliest => {
                            return Err("there is nothing before `earliest`".to_owned());
                        }
                    });
                }
                "limit" => self.limit = Some(number()?.clamp(1, MOST as u64) as usize),
                "wait" => self.wait = Some(number()?),
                // A name that others see, and one that a server gave, are both names.
                "as" | "session" if whose == Whose::Channels => {
                    if value.is_empty() || value.len() > NAME || value.contains(char::is_control) {
                        return Err(format!("`{name}` is a name of up to {NAME} bytes"));
                    }
                    self.session = Some((&*value).into());
                }
                "present" if whose == Whose::Channels => self.who = true,
                "gap" if value == "allow" => self.may_miss = true,
                // Read already by whoever looks who this is.
                "access_token" => {}
                // What EventSource of older browsers' libraries says in place of the field.
                "last_event_id" | "lastEventId" if self.start.is_none() => {
                    self.start = Some(place(&value)?);
                }
                _ if whose == Whose::Page => {}
                other => {
                    return Err(format!(
                        "there is no `{other}`: c, after, before, limit, wait, gap, as, present"
                    ));
                }
            }
        }
        if words.is_truncated() {
            return Err(
                "these are too many words: an address may have 1000, and the form of a QUERY \
                10000 channels"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// All of it: what was not said is as usual.
    fn complete(mut self) -> Result<Following, String> {
        if self.channels.is_empty() {
            return Err("which channels? Name each by `c`, like ?c=news&c=weather".to_owned());
        }
        if self.who {
            // Each is told of once.
            self.channels.sort_unstable();
            self.channels.dedup();
            if self.channels.len() > MOST_PRESENT {
                return Err(format!(
                    "who is present is told of {MOST_PRESENT} channels at once, and these are {}",
                    self.channels.len()
                ));
            }
        }
        let usual = if self.until.is_none() { Start::Now } else { Start::Earliest };
        let (session, who) = (self.session.take(), self.who);
        let (watch, start) = self.onto(Watch::of(Box::default()))?;
        Ok(Following { watch, start: start.unwrap_or(usual), session, who })
    }

    /// What was not said is as in `watch`.
    fn onto(self, mut watch: Watch) -> Result<(Watch, Option<Start>), String> {
        if !self.channels.is_empty() {
            watch.channels = self.channels.into();
        }
        watch.manner = self.manner.unwrap_or(watch.manner);
        watch.until = self.until.unwrap_or(watch.until);
        watch.limit = self.limit.unwrap_or(watch.limit);
        watch.wait = self.wait.map_or(watch.wait, |wait| wait.min(LONGEST_WAIT) * 1000);
        if self.may_miss {
            watch.holes = GapPolicy::Allow;
        }
        if self.start.is_some_and(|start| is_backward(start, watch.until)) {
            return Err(
                "`before` lies before `after`, so nothing is between; exchange them".to_owned()
            );
        }
        Ok((watch, self.start))
    }
}

/// Whether a range ends before it begins. A cursor and a time cannot be told apart without looking, and an end that has
/// passed while `now` was on its way is no mistake.
fn is_backward(start: Start, until: Until) -> bool {
    match (start, until) {
        (Start::After(start), Until::Cursor(end)) => start.epoch == end.epoch && end < start,
        (Start::Since(start), Until::Time(end)) => end < start,
        _ => false,
    }
}

/// Whether it means the view by WebSocket, be it in wrong words.
pub(super) fn asks_for_websocket(head: &Head<'_>) -> bool {
    !matches!(
        websocket::Upgrade::parse(head),
        Err(websocket::UpgradeError::NotRequested | websocket::UpgradeError::Method)
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

/// What must hold of the content of any QUERY, for whoever searches for one of which it does not: what is understood
/// keeps to every bound, and is understood the same when it is written again.
#[doc(hidden)]
pub fn check_query(content: &[u8]) {
    let Ok(form) = str::from_utf8(content) else { return };
    let read = |form: &str| {
        let mut asked = Asked::default();
        asked.hear(query::pairs_up_to(form, MOST_WORDS), Whose::Channels)?;
        asked.complete()
    };
    let following = match read(form) {
        Ok(understood) => understood,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let Following { watch, start, session, who } = &following;
    let start = *start;
    assert!((1..=usize::from(MOST_WORDS)).contains(&watch.channels.len()));
    assert!((1..=MOST).contains(&watch.limit) && watch.wait <= LONGEST_WAIT * 1000);
    assert!(!is_backward(start, watch.until));
    let encoded = |word: &str, text: &str| {
        let letters: Vec<_> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("{word}={}", letters.concat())
    };
    let mut words: Vec<_> = watch.channels.iter().map(|name| encoded("c", name)).collect();
    words.push(match start {
        Start::After(cursor) => format!("after={cursor}"),
        Start::Since(time) => format!("after={time}"),
        Start::Earliest => "after=-1".to_owned(),
        Start::Now => "after=now".to_owned(),
    });
    match watch.until {
        Until::Open => {}
        Until::Cursor(cursor) => words.push(format!("before={cursor}")),
        Until::Time(time) => words.push(format!("before={time}")),
    }
    words.push(format!("limit={}&wait={}", watch.limit, watch.wait / 1000));
    words.extend((watch.holes == GapPolicy::Allow).then(|| "gap=allow".to_owned()));
    words.extend(session.iter().map(|session| encoded("as", session)));
    words.extend(who.then(|| "present".to_owned()));
    let again = words.join("&");
    assert!(read(&again).as_ref() == Ok(&following), "{again}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check_query;

    proptest! {
        #[test]
        fn what_a_query_says_is_said_again_by_what_was_understood(
            words in prop::collection::vec(
                "(c|after|before|limit|wait|gap|as|session|present)=(\\PC{0,8}|[0-9]{1,14}|now|-1|earliest|allow|0badcafe_000000000000[0-9]{4})",
                0..8,
            ),
        ) {
            check_query(words.join("&").as_bytes());
        }

        #[test]
        fn no_content_is_too_strange(content in prop::collection::vec(any::<u8>(), 0..80)) {
            check_query(&content);
        }
    }
}
