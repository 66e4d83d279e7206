//! Parsing of values: numbers, sizes, times, switches and addresses.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use bine_admission as admission;

use bine_server::Listen;
use bine_store::Sync;

/// Parses `ADDRESS[,backlog=N][,nodelay=on|off][,send-buffer=BYTES][,tls=on|off][,proxy=on|off]`.
/// Also returns whether the options include `tls`.
pub(crate) fn listen(text: &str) -> Result<(Listen, bool), String> {
    let mut parts = text.split(',');
    let address = parts.next().unwrap_or_default().parse();
    let mut listen = Listen::on(address.map_err(|error| format!("{error}"))?);
    let mut has_tls_option = false;
    for part in parts {
        match part.split_once('=') {
            Some(("backlog", value)) => listen.backlog = number(value, 1)?,
            Some(("nodelay", "on")) => listen.nodelay = true,
            Some(("nodelay", "off")) => listen.nodelay = false,
            Some(("send-buffer", value)) => listen.send_buffer = Some(bytes(value)?),
            Some(("tls", value @ ("on" | "off"))) => {
                (listen.tls, has_tls_option) = (value == "on", true);
            }
            Some(("proxy", value @ ("on" | "off"))) => listen.proxy = value == "on",
            _ => {
                let options =
                    "backlog=N, nodelay=on|off, send-buffer=BYTES, tls=on|off, proxy=on|off";
                return Err(format!("`{part}` is none of {options}"));
            }
        }
    }
    Ok((listen, has_tls_option))
}

/// Parses an address without options, for plain HTTP.
pub(crate) fn plain_listen(text: &str) -> Result<Listen, String> {
    text.parse().map(Listen::on).map_err(|error| format!("{error}"))
}

pub(crate) fn number<N: FromStr + PartialOrd + Copy + Display>(
    text: &str,
    least: N,
) -> Result<N, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("must be a whole number, {least} or more")),
    }
}

/// Parses a number of sessions, up to the most that can be tracked at one time: beyond that,
/// sessions would be forgotten while they are served.
pub(crate) fn sessions(text: &str) -> Result<usize, String> {
    match number(text, 1)? {
        sessions @ ..=admission::MOST => Ok(sessions),
        _ => Err(format!(
            "must be {} or less: the most sessions that can be tracked",
            admission::MOST
        )),
    }
}

/// Parses a percentage, or `off`.
pub(crate) fn percent(text: &str) -> Result<Option<u8>, String> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        _ if text == "off" => Ok(None),
        Ok(percent @ 1..=100) => Ok(Some(percent)),
        _ => Err("must be a percentage from 1 to 100, or off".to_owned()),
    }
}

pub(crate) fn bytes<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let wrong = || "must be a number of bytes, with or without the unit k, m or g".to_owned();
    let (digits, shift) = match text.bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let number = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(wrong)?;
    N::try_from(number).map_err(|_| format!("{text} is more than this key allows"))
}

pub(crate) fn set_time(time: &mut Duration, text: &str) -> Result<(), String> {
    let wrong = || "must be a time like 500ms, 10s or 2m".to_owned();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => None,
    };
    // Ticks are compared within 24 days; a wait of more than a day is no timeout.
    let milliseconds = milliseconds.filter(|time| (1..=86_400_000).contains(time));
    *time = Duration::from_millis(milliseconds.ok_or_else(wrong)?);
    Ok(())
}

/// Parses when a write to tables is acknowledged.
pub(crate) fn sync(text: &str) -> Result<Sync, String> {
    match text {
        "commit" => Ok(Sync::Commit),
        "none" => Ok(Sync::None),
        "interval" => Ok(Sync::Interval(Duration::from_millis(100))),
        time => {
            let mut interval = Duration::ZERO;
            set_time(&mut interval, time)
                .map_err(|_| "must be commit, none, or a time like 100ms".to_owned())?;
            Ok(Sync::Interval(interval))
        }
    }
}

/// Parses a time in whole seconds, or `off`, which is 0.
pub(crate) fn seconds(text: &str) -> Result<u32, String> {
    let wrong = || "must be off, or a time like 300s, 12h or 365d".to_owned();
    if text == "off" {
        return Ok(0);
    }
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

/// Parses a time, or `off`.
pub(crate) fn set_time_or_off(time: &mut Option<Duration>, text: &str) -> Result<(), String> {
    if text == "off" {
        *time = None;
        return Ok(());
    }
    let mut chosen = Duration::ZERO;
    set_time(&mut chosen, text).map_err(|error| format!("{error}, or off"))?;
    *time = Some(chosen);
    Ok(())
}

/// Parses a range of seconds, from the least to the most.
pub(crate) fn span(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parts = first.parse().ok().zip(last.parse().ok());
    let parts = parts.filter(|(first, last)| 1 <= *first && first <= last && *last <= 86_400);
    let (first, last) = parts.ok_or("must be a range of seconds, like 5-20")?;
    Ok(first..=last)
}

pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("must be on or off".to_owned()),
    }
}

/// Parses one of a few words.
pub(crate) fn word(text: &str, known: &[&str]) -> Result<String, String> {
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("must be one of {}", known.join(", ")))
}
