//! Parses requests that follow channels: which channels, from which position, in which mode.

use std::str::FromStr;

use bine_http::{Head, Method, Status, query, websocket};
use bine_push::{Cursor, GapPolicy, Start, Until};

use super::batch::MAX_MESSAGES;
use super::clock::now;
use super::delivery::DeliveryMode;
use super::media_type::essence;
use super::subscription::SubscriptionSpec;
use super::timestamp;

/// Maximum seconds that a poll waits (RFC 6202 section 5.5: proxies time out early).
pub(super) const MAX_WAIT: u64 = 55;
/// The media type of a QUERY's content (RFC 10008), as in `Accept-Query`.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";
/// Maximum parameters of a form: as many channels as a client may follow at once, and some more.
const MAX_PARAMETERS: u16 = 10_100;
/// Maximum channels of one presence request.
const MAX_PRESENT: usize = 64;
/// Maximum bytes of a session name.
const MAX_NAME: usize = 64;

/// The rejection of a malformed request.
#[derive(Debug)]
pub(super) struct BadRequest(pub(super) Status, pub(super) String);

/// Parses a request to follow channels, from its query, its fields and the content of a QUERY.
pub(super) fn follow(head: &Head<'_>, content: &[u8]) -> Result<FollowRequest, BadRequest> {
    let is_query = head.method() == Method::Query;
    let form = if is_query { form(head, content)? } else { "" };
    let fault = if is_query { Status::UNPROCESSABLE_CONTENT } else { Status::BAD_REQUEST };
    let parameters = read(head, form, ParameterOwner::Channels).and_then(Parameters::complete);
    parameters.map_err(|reason| BadRequest(fault, reason))
}

/// Applies a request's parameters to a subscription of a page, whose query may also contain
/// parameters of the page.
pub(super) fn amend(
    head: &Head<'_>,
    spec: SubscriptionSpec,
) -> Result<(SubscriptionSpec, Option<Start>), String> {
    read(head, "", ParameterOwner::Page)?.apply_to(spec)
}

/// The owner of a query string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterOwner {
    Channels,
    Page,
}

/// Reads the parameters of the query, the form and the fields.
fn read(head: &Head<'_>, form: &str, owner: ParameterOwner) -> Result<Parameters, String> {
    let mut parameters = Parameters::default();
    parameters.read_pairs(query::pairs(head.query().unwrap_or_default()), owner)?;
    parameters.read_pairs(query::pairs_up_to(form, MAX_PARAMETERS), owner)?;
    if let Some(last) = head.field_text("Last-Event-ID").filter(|last| !last.is_empty()) {
        parameters.start = Some(position(last)?);
    }
    if let Some(wait) = preferred_wait(head.field_text("Prefer").unwrap_or_default()) {
        parameters.wait = Some(wait);
    }
    parameters.manner = manner(head.field_text("Accept").unwrap_or_default());
    Ok(parameters)
}

/// Decodes the form of a QUERY (RFC 10008 section 2).
fn form<'c>(head: &Head<'_>, content: &'c [u8]) -> Result<&'c str, BadRequest> {
    let kind = head.field_text("Content-Type").map(essence);
    let unclear = |status, reason: &str| Err(BadRequest(status, reason.to_owned()));
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
        query::pairs_up_to(form, MAX_PARAMETERS)
            .all(|(name, value)| name.decode().is_ok() && value.decode().is_ok())
    });
    form.ok_or_else(|| BadRequest(Status::BAD_REQUEST, ENCODED.to_owned()))
}

/// The error for text that is not percent-encoded UTF-8.
const ENCODED: &str = "what is asked is not encoded as it should be: percent signs and UTF-8";

/// The parameters of a request before defaults apply.
#[derive(Debug, Default)]
struct Parameters {
    channels: Vec<Box<str>>,
    manner: Option<DeliveryMode>,
    start: Option<Start>,
    until: Option<Until>,
    limit: Option<usize>,
    /// In seconds.
    wait: Option<u64>,
    allows_gaps: bool,
    /// The session name that the client gave.
    session: Option<Box<str>>,
    /// Whether the client requests the present sessions only.
    is_presence_only: bool,
}

/// A parsed request to follow channels.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct FollowRequest {
    pub(super) spec: SubscriptionSpec,
    pub(super) start: Start,
    /// The session name that the client gave.
    pub(super) session: Option<Box<str>>,
    /// Whether the client requests the present sessions only.
    pub(super) is_presence_only: bool,
}

impl Parameters {
    fn read_pairs(
        &mut self,
        mut pairs: query::Pairs<'_>,
        owner: ParameterOwner,
    ) -> Result<(), String> {
        for (name, value) in pairs.by_ref() {
            let (Ok(name), Ok(value)) = (name.decode(), value.decode()) else {
                return Err(ENCODED.to_owned());
            };
            let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
            match &*name {
                "c" if owner == ParameterOwner::Channels => self.channels.push((&*value).into()),
                "after" => self.start = Some(position(&value)?),
                "before" => {
                    self.until = Some(match position(&value)? {
                        Start::After(cursor) => Until::Cursor(cursor),
                        Start::Since(time) => Until::Time(time),
                        Start::Now => Until::Time(now()),
                        Start::Earliest => {
                            return Err("there is nothing before `earliest`".to_owned());
                        }
                    });
                }
                "limit" => self.limit = Some(number()?.clamp(1, MAX_MESSAGES as u64) as usize),
                "wait" => self.wait = Some(number()?),
                // `as` is a name that the client chose, `session` one that the server gave.
                "as" | "session" if owner == ParameterOwner::Channels => {
                    if value.is_empty()
                        || value.len() > MAX_NAME
                        || value.contains(char::is_control)
                    {
                        return Err(format!("`{name}` is a name of up to {MAX_NAME} bytes"));
                    }
                    self.session = Some((&*value).into());
                }
                "present" if owner == ParameterOwner::Channels => self.is_presence_only = true,
                "gap" if value == "allow" => self.allows_gaps = true,
                // The access check has already read the token.
                "access_token" => {}
                // Sent by EventSource polyfills for old browsers in place of the field.
                "last_event_id" | "lastEventId" if self.start.is_none() => {
                    self.start = Some(position(&value)?);
                }
                _ if owner == ParameterOwner::Page => {}
                other => {
                    return Err(format!(
                        "there is no `{other}`: c, after, before, limit, wait, gap, as, present"
                    ));
                }
            }
        }
        if pairs.is_truncated() {
            return Err(
                "these are too many words: an address may have 1000, and the form of a QUERY \
                10000 channels"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Completes the parameters with defaults.
    fn complete(mut self) -> Result<FollowRequest, String> {
        if self.channels.is_empty() {
            return Err("which channels? Name each by `c`, like ?c=news&c=weather".to_owned());
        }
        if self.is_presence_only {
            // Each channel is listed once.
            self.channels.sort_unstable();
            self.channels.dedup();
            if self.channels.len() > MAX_PRESENT {
                return Err(format!(
                    "who is present is told of {MAX_PRESENT} channels at once, and these are {}",
                    self.channels.len()
                ));
            }
        }
        let usual = if self.until.is_none() { Start::Now } else { Start::Earliest };
        let (session, is_presence_only) = (self.session.take(), self.is_presence_only);
        let (spec, start) = self.apply_to(SubscriptionSpec::of(Box::default()))?;
        Ok(FollowRequest { spec, start: start.unwrap_or(usual), session, is_presence_only })
    }

    /// Applies the given parameters to a subscription.
    fn apply_to(
        self,
        mut spec: SubscriptionSpec,
    ) -> Result<(SubscriptionSpec, Option<Start>), String> {
        if !self.channels.is_empty() {
            spec.channels = self.channels.into();
        }
        spec.manner = self.manner.unwrap_or(spec.manner);
        spec.until = self.until.unwrap_or(spec.until);
        spec.limit = self.limit.unwrap_or(spec.limit);
        spec.wait = self.wait.map_or(spec.wait, |wait| wait.min(MAX_WAIT) * 1000);
        if self.allows_gaps {
            spec.holes = GapPolicy::Allow;
        }
        if self.start.is_some_and(|start| is_backward(start, spec.until)) {
            return Err(
                "`before` lies before `after`, so nothing is between; exchange them".to_owned()
            );
        }
        Ok((spec, self.start))
    }
}

/// Whether a range ends before it begins. Comparing a cursor with a time needs the hub, and an end
/// that passed while the request with `now` was in transit is valid.
fn is_backward(start: Start, until: Until) -> bool {
    match (start, until) {
        (Start::After(start), Until::Cursor(end)) => start.epoch == end.epoch && end < start,
        (Start::Since(start), Until::Time(end)) => end < start,
        _ => false,
    }
}

/// Whether the request is a WebSocket upgrade, even a malformed one.
pub(super) fn asks_for_websocket(head: &Head<'_>) -> bool {
    !matches!(
        websocket::Upgrade::parse(head),
        Err(websocket::UpgradeError::NotRequested | websocket::UpgradeError::Method)
    )
}

/// Returns the first supported media type in an `Accept` field.
fn manner(accept: &str) -> Option<DeliveryMode> {
    accept.split(',').find_map(|range| match range.split(';').next()?.trim() {
        "application/json" => Some(DeliveryMode::Poll),
        "text/event-stream" => Some(DeliveryMode::Events),
        "application/x-ndjson" | "application/ndjson" => Some(DeliveryMode::Lines),
        "multipart/mixed" => Some(DeliveryMode::Parts),
        _ => None,
    })
}

/// Parses `Prefer: wait=10` (RFC 7240 section 4.3).
fn preferred_wait(prefer: &str) -> Option<u64> {
    let preferences = prefer.split([',', ';']);
    preferences
        .filter_map(|one| one.trim().strip_prefix("wait="))
        .find_map(|wait| wait.parse().ok())
}

/// Parses a position: a cursor, a keyword or a time.
fn position(text: &str) -> Result<Start, String> {
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

/// Parses milliseconds since 1970 or RFC 3339. An unencoded `+` of a zone arrives as a space.
fn time(text: &str) -> Option<u64> {
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.or_else(|| timestamp::read(text)).or_else(|| timestamp::read(&text.replace(' ', "+")))
}

/// Fuzz target for the content of a QUERY. A parsed form stays within all limits, and parses to
/// the same value after it is formatted again.
#[doc(hidden)]
pub fn check_query(content: &[u8]) {
    let Ok(form) = str::from_utf8(content) else { return };
    let read = |form: &str| {
        let mut parameters = Parameters::default();
        parameters
            .read_pairs(query::pairs_up_to(form, MAX_PARAMETERS), ParameterOwner::Channels)?;
        parameters.complete()
    };
    let following = match read(form) {
        Ok(understood) => understood,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let FollowRequest { spec, start, session, is_presence_only } = &following;
    let start = *start;
    assert!((1..=usize::from(MAX_PARAMETERS)).contains(&spec.channels.len()));
    assert!((1..=MAX_MESSAGES).contains(&spec.limit) && spec.wait <= MAX_WAIT * 1000);
    assert!(!is_backward(start, spec.until));
    let encoded = |word: &str, text: &str| {
        let letters: Vec<_> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("{word}={}", letters.concat())
    };
    let mut pairs: Vec<_> = spec.channels.iter().map(|name| encoded("c", name)).collect();
    pairs.push(match start {
        Start::After(cursor) => format!("after={cursor}"),
        Start::Since(time) => format!("after={time}"),
        Start::Earliest => "after=-1".to_owned(),
        Start::Now => "after=now".to_owned(),
    });
    match spec.until {
        Until::Open => {}
        Until::Cursor(cursor) => pairs.push(format!("before={cursor}")),
        Until::Time(time) => pairs.push(format!("before={time}")),
    }
    pairs.push(format!("limit={}&wait={}", spec.limit, spec.wait / 1000));
    pairs.extend((spec.holes == GapPolicy::Allow).then(|| "gap=allow".to_owned()));
    pairs.extend(session.iter().map(|session| encoded("as", session)));
    pairs.extend(is_presence_only.then(|| "present".to_owned()));
    let again = pairs.join("&");
    assert!(read(&again).as_ref() == Ok(&following), "{again}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check_query;

    proptest! {
        #[test]
        fn parsed_queries_format_to_equal_queries(
            pairs in prop::collection::vec(
                "(c|after|before|limit|wait|gap|as|session|present)=(\\PC{0,8}|[0-9]{1,14}|now|-1|earliest|allow|0badcafe_000000000000[0-9]{4})",
                0..8,
            ),
        ) {
            check_query(pairs.join("&").as_bytes());
        }

        #[test]
        fn parses_arbitrary_content_without_panicking(content in prop::collection::vec(any::<u8>(), 0..80)) {
            check_query(&content);
        }
    }
}
