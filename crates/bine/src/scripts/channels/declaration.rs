//! Declarations of channels: what `channel(name, settings)` passes, as a pattern, settings and rules.

use std::sync::Arc;

use bine_http::Status;
use bine_script::{HostError, Value};

use super::place::ChannelPlace;
use crate::channels::{
    ChannelRule, Durability, Expiry, Pattern, Retention, RuleAudience, Settings,
};
use crate::error::Error;
use crate::nearest::nearest;
use crate::scripts::app_settings::AppAccess;
use crate::user_name::UserName;

/// The longest name of a declaration, and the longest value of a segment, in bytes. The hub bounds
/// the whole name.
const MAX_NAME: usize = 100;
/// The greatest number that a float holds exactly.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;
/// The segment that represents the name of a user.
const USER: &str = "{user}";

const SETTINGS: [&str; 5] = ["follow", "publish", "retention", "expiry", "durability"];
const RETENTION: [&str; 3] = ["messages", "bytes", "age"];
const EXPIRY: [&str; 3] = ["afterPublish", "afterActivity", "at"];

/// A channel of a script, or a pattern of channels.
pub(super) struct ScriptChannel {
    /// The name in the script.
    pub(super) name: String,
    /// The name, or the pattern, for clients and the rest of the program.
    full: Arc<str>,
    pub(super) settings: Settings,
    /// The permitted followers; `None`: only the program.
    pub(super) follow: Option<RuleAudience>,
    pub(super) publish: Option<RuleAudience>,
}

/// Reads a declaration.
///
/// # Errors
///
/// The reason why it is wrong, which names the channel and the correction.
pub(super) fn read(
    place: &ChannelPlace,
    name: &Value,
    settings: &Value,
) -> Result<ScriptChannel, String> {
    let Value::Text(name) = name else {
        return Err(format!("the name of a channel is a string, not {}", name.kind()));
    };
    if !is_name(name) {
        return Err(format!(
            "a channel cannot have the name `{}`: use up to {MAX_NAME} characters without white space, such as \"news\", \"rooms/{{room}}\" for one segment of any text, or \"logs/*\" for any rest",
            shortened(name)
        ));
    }
    let full: Arc<str> = format!("{}/{name}", place.segment).into();
    if Pattern::parse(&full).is_err() {
        return Err(match Pattern::parse(name) {
            Ok(_) => format!(
                "the path of the application, `{}`, cannot begin the name of a channel: give the application a `name` in app.toml",
                place.segment
            ),
            Err(_) => format!(
                "`{name}` is no name and no pattern: braces are around a whole segment, such as \"rooms/{{room}}\", and `*` is at the end"
            ),
        });
    }
    let wrong = |reason: String| format!("the channel `{name}` {reason}");
    let object = entries(settings).map_err(|kind| {
        wrong(format!("has settings in an object, such as {{ follow: \"anyone\" }}, not {kind}"))
    })?;
    let mut channel = ScriptChannel {
        name: name.clone(),
        full,
        settings: Settings::default(),
        follow: None,
        publish: None,
    };
    for (key, value) in object {
        channel.set(place, key, value).map_err(wrong)?;
    }
    Ok(channel)
}

impl ScriptChannel {
    fn set(&mut self, place: &ChannelPlace, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "follow" => self.follow = self.audience(place, key, value)?,
            "publish" => self.publish = self.audience(place, key, value)?,
            "retention" => self.settings.retention = retention(value)?,
            "expiry" => self.settings.expiry = expiry(value)?,
            "durability" => self.settings.durability = durability(value)?,
            _ => return Err(unknown("setting", key, &SETTINGS)),
        }
        Ok(())
    }

    /// The users that a rule is for.
    fn audience(
        &self,
        place: &ChannelPlace,
        key: &str,
        value: &Value,
    ) -> Result<Option<RuleAudience>, String> {
        let audience = match value.as_text() {
            Some("nobody") => return Ok(None),
            Some("anyone") => RuleAudience::Everyone,
            Some("users") => RuleAudience::Users,
            _ => {
                return Err(format!(
                    "has a wrong `{key}`: write \"anyone\", \"users\" (who have logged in) or \"nobody\" (but the application)"
                ));
            }
        };
        match (&place.access, audience) {
            (AppAccess::Group(group), _) => Err(format!(
                "belongs to an application for the group `{group}` (`access` in app.toml), which `{key}` cannot check: leave out `{key}`, and give the group a right to the channel `{}`",
                self.full
            )),
            (AppAccess::Users, RuleAudience::Everyone) => Err(format!(
                "belongs to an application for users (`access` in app.toml): write `{key}: \"users\"`"
            )),
            (_, RuleAudience::Everyone) if self.segments().any(|segment| segment == USER) => {
                Err(format!(
                    "has the segment {USER}, which stands for the name of the user who has logged in: write `{key}: \"users\"`, or give the segment another name"
                ))
            }
            _ => Ok(Some(audience)),
        }
    }

    /// The channels that the declaration means, for a rule.
    pub(super) fn rule(&self) -> ChannelRule {
        match Pattern::parse(&self.full) {
            Ok(pattern) if self.is_pattern() => pattern.into(),
            _ => ChannelRule::from(&*self.full),
        }
    }

    /// Whether it is a pattern of several channels.
    pub(super) fn is_pattern(&self) -> bool {
        self.full.contains(['*', '{'])
    }

    /// The name for clients; of a pattern, the pattern.
    pub(super) fn full_name(&self) -> &str {
        &self.full
    }

    fn segments(&self) -> impl Iterator<Item = &str> {
        self.full.split('/')
    }

    /// Whether a name may belong to both declarations.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.segments(), other.segments());
        loop {
            let (one, another) = match (own.next(), others.next()) {
                (None, None) => return true,
                (Some(one), Some(another)) => (one, another),
                _ => return false,
            };
            match (one.strip_suffix('*'), another.strip_suffix('*')) {
                (Some(one), Some(another)) => {
                    return one.starts_with(another) || another.starts_with(one);
                }
                (Some(front), None) => {
                    return another.starts_with('{') || another.starts_with(front);
                }
                (None, Some(front)) => return one.starts_with('{') || one.starts_with(front),
                (None, None) => {
                    let is_any = one.starts_with('{') || another.starts_with('{');
                    if !is_any && one != another {
                        return false;
                    }
                }
            }
        }
    }

    /// The name of a channel with these values in the place of its segments in braces, and of its
    /// rest. A value never becomes a part of a pattern, or more than its segment.
    ///
    /// The inner error is for the visitor: a value that no name can have.
    pub(super) fn name_with(&self, values: &Value) -> Result<Result<String, Error>, HostError> {
        let Value::Array(values) = values else {
            return Err(HostError::Type("the values of a name are strings".to_owned()));
        };
        let mut left = values.iter();
        let mut name = String::with_capacity(self.full.len() + 16);
        for (at, segment) in self.segments().enumerate() {
            if at > 0 {
                name.push('/');
            }
            let is_rest = segment.ends_with('*');
            if !is_rest && !segment.starts_with('{') {
                name.push_str(segment);
                continue;
            }
            let value = match left.next() {
                Some(Value::Text(value)) => value,
                given => return Err(self.wrong_value(segment, given)),
            };
            if !is_value(segment, value) {
                let message =
                    format!("`{}` cannot be a part of the name of a channel.", shortened(value));
                return Ok(Err(Error::status(Status::UNPROCESSABLE_CONTENT, message)));
            }
            name.push_str(segment.strip_suffix('*').filter(|_| is_rest).unwrap_or_default());
            name.push_str(value);
        }
        match left.next() {
            Some(_) => Err(HostError::Type(format!(
                "`{}` takes {} values, not {}",
                self.name,
                values.len() - left.len() - 1,
                values.len()
            ))),
            None => Ok(Ok(name)),
        }
    }

    fn wrong_value(&self, segment: &str, given: Option<&Value>) -> HostError {
        let found = given.map_or("nothing", Value::kind);
        HostError::Type(format!(
            "`{}` takes a string for `{segment}`, not {found}: write `.at(\"..\")`",
            self.name
        ))
    }
}

fn is_name(name: &str) -> bool {
    let is_wrong = |letter: char| letter.is_control() || letter.is_whitespace();
    (1..=MAX_NAME).contains(&name.len())
        && !name.contains(is_wrong)
        && name.split('/').all(|segment| !segment.is_empty())
}

/// Whether a value can take the place of a segment.
fn is_value(segment: &str, value: &str) -> bool {
    let is_syntax = |letter: char| matches!(letter, '*' | '{' | '}') || letter.is_control();
    if value.len() > MAX_NAME || value.contains(is_syntax) {
        return false;
    }
    match segment {
        USER => UserName::parse(value).is_ok(),
        _ if segment.starts_with('{') => !value.is_empty() && !value.contains('/'),
        _ => true,
    }
}

fn retention(value: &Value) -> Result<Retention, String> {
    let object = entries(value).map_err(|kind| {
        format!("has its `retention` in an object, such as {{ messages: 1000 }}, not {kind}")
    })?;
    let mut retention = Retention::default();
    for (key, value) in object {
        let limit = match value {
            Value::Null => 0,
            value => whole(value, "retention", key)?,
        };
        match &**key {
            "messages" => retention.messages = limit,
            "bytes" => retention.bytes = limit,
            "age" => retention.age = limit,
            _ => return Err(unknown("limit of `retention`", key, &RETENTION)),
        }
    }
    Ok(retention)
}

fn expiry(value: &Value) -> Result<Expiry, String> {
    let example = "{ afterPublish: 60_000 } or { afterActivity: 60_000 } (milliseconds), or { at } with a Date";
    if matches!(value, Value::Null) {
        return Ok(Expiry::Never);
    }
    let object = entries(value)
        .map_err(|kind| format!("has its `expiry` in an object, {example}, not {kind}"))?;
    let [(key, value)] = object else {
        return Err(format!("has one rule for its `expiry`: {example}"));
    };
    let time = whole(value, "expiry", key)?;
    match &**key {
        "afterPublish" => Ok(Expiry::AfterPublish(time)),
        "afterActivity" => Ok(Expiry::AfterActivity(time)),
        "at" => Ok(Expiry::At(time)),
        _ => Err(unknown("rule of `expiry`", key, &EXPIRY)),
    }
}

fn durability(value: &Value) -> Result<Durability, String> {
    match value.as_text() {
        Some("memory") => Ok(Durability::Memory),
        Some("interval") => Ok(Durability::Interval),
        Some("commit") => Ok(Durability::Commit),
        _ => {
            Err("has a wrong `durability`: write \"memory\", \"interval\" or \"commit\"".to_owned())
        }
    }
}

/// A whole number above 0.
fn whole(value: &Value, of: &str, key: &str) -> Result<u64, String> {
    match value {
        Value::Number(number) if (1.0..=MAX_NUMBER).contains(number) && number.fract() == 0.0 =>
        {
            #[expect(clippy::cast_sign_loss, reason = "the number is at least 1")]
            Ok(*number as u64)
        }
        _ => {
            Err(format!("has a wrong `{}` in `{of}`: write a whole number above 0", shortened(key)))
        }
    }
}

/// The entries of an object; none for `undefined` and `null`. The error is the kind of the value.
fn entries(value: &Value) -> Result<&[(String, Value)], &'static str> {
    match value {
        Value::Undefined | Value::Null => Ok(&[]),
        Value::Object(entries) => Ok(entries),
        other => Err(other.kind()),
    }
}

fn unknown(what: &str, key: &str, known: &[&'static str]) -> String {
    let near = nearest(known.iter().copied(), key);
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("has no {what} `{}`{near}; there are {}", shortened(key), known.join(", "))
}

/// The beginning of a text from a script, for a message.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(access: AppAccess) -> ChannelPlace {
        ChannelPlace { segment: "board".to_owned(), access, conflict: None }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn object(entries: &[(&str, Value)]) -> Value {
        let entry = |(key, value): &(&str, Value)| ((*key).to_owned(), value.clone());
        Value::Object(entries.iter().map(entry).collect())
    }

    #[track_caller]
    fn declared(name: &str, settings: &Value) -> ScriptChannel {
        read(&place(AppAccess::Anyone), &text(name), settings).unwrap()
    }

    #[test]
    fn reads_settings_and_rules() {
        let settings = object(&[
            ("follow", text("anyone")),
            ("publish", text("users")),
            ("retention", object(&[("messages", 5.0.into()), ("age", Value::Null)])),
            ("expiry", object(&[("afterPublish", 60_000.0.into())])),
            ("durability", text("commit")),
        ]);
        let news = declared("news", &settings);
        let retention = Retention { messages: 5, age: 0, ..Retention::default() };
        let (expiry, durability) = (Expiry::AfterPublish(60_000), Durability::Commit);
        let expected = Settings { content_type: None, retention, expiry, durability };
        assert_eq!(news.settings, expected);
        let both = (Some(RuleAudience::Everyone), Some(RuleAudience::Users));
        assert_eq!((news.follow, news.publish), both);
        assert_eq!(news.rule(), ChannelRule::from("board/news"));
        let closed = declared("closed", &Value::Null);
        assert_eq!((closed.follow, closed.publish), (None, None));
    }

    #[test]
    fn values_never_become_more_than_a_segment() {
        let rooms = declared("rooms/{room}/{part}", &Value::Null);
        let name = |values: &[&str]| {
            let values = Value::Array(values.iter().map(|value| text(value)).collect());
            rooms.name_with(&values).unwrap().map_err(|error| error.code().code())
        };
        assert_eq!(name(&["hops", "1"]), Ok("board/rooms/hops/1".to_owned()));
        for value in ["", "a/b", "*", "{room}", "a\n", "\0", "x}", &"x".repeat(101)] {
            assert_eq!(name(&[value, "1"]), Err(422), "{value:?}");
        }
        let logs = declared("logs/day-*", &Value::Null);
        let rest = |value: &str| {
            let named = logs.name_with(&Value::Array(vec![text(value)])).unwrap();
            named.map_err(|error| error.code().code())
        };
        assert_eq!(rest("1/2"), Ok("board/logs/day-1/2".to_owned()));
        assert_eq!(rest("*"), Err(422));
        let inbox = declared("inbox/{user}", &Value::Null);
        let named = inbox.name_with(&Value::Array(vec![text(" ann")])).unwrap();
        assert!(named.is_err());
    }

    #[test]
    fn counts_values() {
        let rooms = declared("rooms/{room}", &Value::Null);
        let told = |values: Vec<Value>| match rooms.name_with(&Value::Array(values)) {
            Err(HostError::Type(told)) => told,
            other => panic!("{other:?}"),
        };
        assert!(told(Vec::new()).contains("takes a string for `{room}`, not nothing"));
        assert!(told(vec![Value::Number(1.0)]).contains("not a number"));
        let two = told(vec![text("a"), text("b")]);
        assert_eq!(two, "`rooms/{room}` takes 1 values, not 2");
    }

    #[test]
    fn names_the_correction_of_a_wrong_declaration() {
        let none = Value::Null;
        for (name, settings, message) in [
            (Value::Number(1.0), none.clone(), "is a string, not a number"),
            (text(""), none.clone(), "cannot have the name ``"),
            (text("a b"), none.clone(), "cannot have the name `a b`"),
            (text("/a"), none.clone(), "cannot have the name"),
            (text("a{b}"), none.clone(), "braces are around a whole segment"),
            (text("*a"), none.clone(), "`*` is at the end"),
            (text("a"), text("anyone"), "has settings in an object"),
            (text("a"), object(&[("folow", text("anyone"))]), "did you mean `follow`?"),
            (text("a"), object(&[("follow", text("everyone"))]), "write \"anyone\", \"users\""),
            (text("a"), object(&[("follow", Value::Bool(true))]), "has a wrong `follow`"),
            (text("a/{user}"), object(&[("follow", text("anyone"))]), "write `follow: \"users\"`"),
            (text("a"), object(&[("retention", 5.0.into())]), "in an object"),
            (
                text("a"),
                object(&[("retention", object(&[("messages", 0.5.into())]))]),
                "whole number above 0",
            ),
            (
                text("a"),
                object(&[("retention", object(&[("size", 1.0.into())]))]),
                "has no limit of `retention` `size`",
            ),
            (text("a"), object(&[("expiry", object(&[]))]), "has one rule for its `expiry`"),
            (text("a"), object(&[("durability", text("disk"))]), "has a wrong `durability`"),
        ] {
            let told = read(&place(AppAccess::Anyone), &name, &settings).err().unwrap();
            assert!(told.contains(message), "{message}: {told}");
        }
        let anyone = object(&[("follow", text("anyone"))]);
        let users = read(&place(AppAccess::Users), &text("a"), &anyone).err().unwrap();
        assert!(users.contains("write `follow: \"users\"`"), "{users}");
        let group = AppAccess::Group("staff".to_owned());
        let group = read(&place(group), &text("a"), &anyone).err().unwrap();
        assert!(group.contains("give the group a right to the channel `board/a`"), "{group}");
    }
}
