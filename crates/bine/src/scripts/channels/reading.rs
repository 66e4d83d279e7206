//! Reads channels for a script: messages, descriptions, and the addresses for browsers.

use std::sync::Arc;

use bine_script::{HostCall, HostError, Value};

use super::{ScriptChannels, channels_of};
use crate::channels::{
    BodyFormat, CHANNELS_PATH, ChannelInfo, Channels, Cursor, Engine, Message, Refused, now,
};
use crate::error::Error;
use crate::percent_encoding::percent_encode;
use crate::scripts::call_state::{CallState, outcome};
use crate::scripts::tables::time_text;
use crate::store::Time;
use crate::trace;

/// The most messages of one read.
const MAX_MESSAGES: f64 = 1000.0;
/// The most bytes of the bodies of one read.
const MAX_BYTES: usize = 4 << 20;
/// The most channels of one address.
const MAX_CHANNELS: usize = 64;

/// `newest(slot, values, limit)`: the newest messages, the newest first.
pub(super) fn newest(own: &ScriptChannels, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let state = CallState::of(call)?;
    let limit = limit(call)?;
    let name = match own.named(&call.value(0)?, &call.value(1)?)? {
        Ok((name, _)) => name,
        Err(error) => return Ok(outcome(Err(error))),
    };
    let channels = channels_of(&state)?;
    let until = position(&state, &channels);
    record(channels.engine(), &name);
    let read = channels.engine().hub(|hub| {
        let epoch = hub.watermark().epoch;
        hub.newest(&name, limit, until, now()).map(|messages| (messages, epoch))
    });
    let (messages, epoch) = match read {
        Some(Ok(read)) => read,
        // The first publication creates the channel.
        Some(Err(Refused::NotFound(_) | Refused::Gone(_) | Refused::Removed)) => (Vec::new(), 0),
        Some(Err(refused)) => return Ok(outcome(Err(ended(refused.to_string())))),
        None => return Ok(outcome(Err(ended("the channels have ended".to_owned())))),
    };
    let mut left = MAX_BYTES;
    let within = |message: &&Arc<Message>| match left.checked_sub(message.body.len()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let shown = messages.iter().rev().take_while(within).map(|message| shown(message, epoch));
    Ok(found(Value::Array(shown.collect())))
}

/// `describe(slot, values)`: the state of a channel; `null`: it does not exist.
pub(super) fn describe(own: &ScriptChannels, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let state = CallState::of(call)?;
    let name = match own.named(&call.value(0)?, &call.value(1)?)? {
        Ok((name, _)) => name,
        Err(error) => return Ok(outcome(Err(error))),
    };
    let channels = channels_of(&state)?;
    record(channels.engine(), &name);
    let described = channels.describe(&name).ok();
    Ok(found(described.map_or(Value::Null, |info| description(&info))))
}

/// `url([[slot, values], ..])`: the address by which a browser follows channels from here on.
pub(super) fn url(own: &ScriptChannels, call: &HostCall<'_, '_>) -> Result<Value, HostError> {
    let state = CallState::of(call)?;
    let names = match own.names(&call.value(0)?)? {
        Ok(names) => names,
        Err(error) => return Ok(outcome(Err(error))),
    };
    if names.is_empty() || names.len() > MAX_CHANNELS {
        return Err(HostError::Range(format!(
            "one address is for 1 to {MAX_CHANNELS} channels, not {}",
            names.len()
        )));
    }
    let mut url = format!("{CHANNELS_PATH}?");
    for (name, _) in &names {
        url.push_str("c=");
        url.push_str(&percent_encode(name));
        url.push('&');
    }
    let channels = channels_of(&state)?;
    if let Some(cursor) = position(&state, &channels) {
        url.push_str("after=");
        url.push_str(&cursor.to_string());
        url.push('&');
    }
    url.push_str("gap=allow");
    Ok(found(Value::Text(url)))
}

/// The limit of a read.
fn limit(call: &HostCall<'_, '_>) -> Result<usize, HostError> {
    let limit = call.number(2)?;
    if limit.fract() != 0.0 || !(1.0..=MAX_MESSAGES).contains(&limit) {
        return Err(HostError::Range(format!(
            "newest(n) reads from 1 to {MAX_MESSAGES} messages, not {limit}"
        )));
    }
    #[expect(clippy::cast_sign_loss, reason = "the number is at least 1")]
    Ok(limit as usize)
}

/// Up to where a page reads: the end of the channels at its first use of any. So messages that a page
/// shows, and those that its browser receives later, are all messages, each once. A service reads
/// what there is.
fn position(state: &CallState, channels: &Channels) -> Option<Cursor> {
    let end = || channels.engine().hub(|hub| hub.watermark());
    if !state.is_page() {
        return end();
    }
    let known = state.channel_position.get().or_else(end);
    state.channel_position.set(known);
    known
}

/// Notes that a live page depends on a channel, before it reads the channel.
fn record(engine: &Arc<Engine>, name: &str) {
    if let Some(trace) = trace::current() {
        trace.record_signal(&engine.watch(name));
    }
}

fn ended(reason: String) -> Error {
    Error::hidden(bine_http::Status::SERVICE_UNAVAILABLE, reason)
}

/// A result for the words.
fn found(value: Value) -> Value {
    Value::Object(vec![("value".to_owned(), value)])
}

/// A message for a script. The words parse JSON.
fn shown(message: &Message, epoch: u32) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let optional = |value: Option<&str>| value.map_or(Value::Null, text);
    let cursor = Cursor { epoch, sequence: message.sequence };
    let body = match (message.format, str::from_utf8(&message.body)) {
        (BodyFormat::Json | BodyFormat::Text, Ok(body)) => text(body),
        _ => Value::Bytes(message.body.to_vec()),
    };
    let fields = [
        ("cursor", Value::Text(cursor.to_string())),
        ("time", Value::Text(moment(message.time))),
        ("type", text(&message.content_type)),
        ("event", optional(message.event.as_deref())),
        ("id", optional(message.id.as_deref())),
        ("isJson", Value::Bool(message.format == BodyFormat::Json)),
        ("data", body),
    ];
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn description(info: &ChannelInfo) -> Value {
    let number = |number: u64| Value::Number(number as f64);
    let fields = [
        ("messages", number(info.messages as u64)),
        ("bytes", number(info.bytes)),
        ("created", Value::Text(moment(info.created))),
        ("expires", info.expires.map_or(Value::Null, |expires| Value::Text(moment(expires)))),
        ("isClosed", Value::Bool(info.is_closed)),
    ];
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A time in milliseconds since 1970, as the columns of tables have it.
fn moment(milliseconds: u64) -> String {
    let microseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX).saturating_mul(1000);
    time_text(Time(microseconds))
}
