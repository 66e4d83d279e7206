//! Parses batches of messages with bounded memory: small messages take many times their bytes.

use std::fmt;
use std::marker::PhantomData;

use bine_push::{Content, Draft};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum messages in a batch.
pub(super) const MAX_MESSAGES: usize = 1000;

/// Maximum channels of a message, as the hub limits them.
const MAX_NAMES: usize = 64;

/// Parses a body: one message, an array of messages, or one message a line.
pub(super) fn read_batch(bytes: &[u8]) -> Result<Vec<Draft>, String> {
    let wrong = |error: serde_json::Error| format!("no messages: {error}");
    let items: Result<Vec<Item>, _> = if bytes.trim_ascii_start().first() == Some(&b'[') {
        serde_json::from_slice(bytes).map(|Batch::<_, MAX_MESSAGES>(items)| items)
    } else {
        // A sequence of JSON values: a single message, or one a line.
        let values = serde_json::Deserializer::from_slice(bytes).into_iter();
        values.take(MAX_MESSAGES + 1).collect()
    };
    let numbered = items.map_err(wrong)?.into_iter().enumerate();
    numbered
        .map(|(number, item)| draft(item).map_err(|why| format!("message {}: {why}", number + 1)))
        .collect()
}

/// A message of a batch before validation.
#[derive(Default)]
struct Item {
    channels: Option<Box<RawValue>>,
    content_type: Option<Box<RawValue>>,
    event: Option<Box<RawValue>>,
    id: Option<Box<RawValue>>,
    data: Option<Box<RawValue>>,
    /// The first unknown member.
    unknown: Option<String>,
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a message: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Item, A::Error> {
        let mut item = Item::default();
        while let Some(name) = from.next_key::<String>()? {
            let member = match &*name {
                "channels" => &mut item.channels,
                "type" => &mut item.content_type,
                "event" => &mut item.event,
                "id" => &mut item.id,
                "data" => &mut item.data,
                _ => {
                    from.next_value::<IgnoredAny>()?;
                    item.unknown.get_or_insert(name);
                    continue;
                }
            };
            *member = Some(from.next_value()?);
        }
        Ok(item)
    }
}

fn draft(item: Item) -> Result<Draft, String> {
    let Item { channels, content_type, event, id, data, unknown } = item;
    let names = channels.ok_or("it has no `channels`: a name, or an array of them")?;
    let names = match text(&names) {
        Ok(name) => vec![name],
        Err(_) => serde_json::from_str(names.get())
            .map(|Batch::<_, MAX_NAMES>(names)| names)
            .map_err(|_| "`channels` is a name, or an array of them")?,
    };
    let word = |name: &str, value: Option<Box<RawValue>>| {
        value.map(|value| text(&value)).transpose().map_err(|_| format!("`{name}` is a text"))
    };
    let content_type = word("type", content_type)?;
    let (event, id) = (word("event", event)?, word("id", id)?);
    let data = data.ok_or("it has no `data`: a text, or any other value")?;
    if let Some(name) = unknown {
        return Err(format!("there is no `{name}`: channels, type, event, id, data"));
    }
    // A string is a text body unless its type is JSON. Any other value is a JSON body.
    let is_json = content_type.as_deref().is_some_and(|own| own.starts_with("application/json"));
    let (body, usual) = match text(&data) {
        Ok(text) if !is_json => (text.into_bytes(), "text/plain; charset=utf-8"),
        _ => (data.get().as_bytes().to_vec(), "application/json"),
    };
    let content = Content {
        content_type: Some(content_type.as_deref().unwrap_or(usual).into()),
        event: event.map(Into::into),
        id: id.map(Into::into),
        body: body.into(),
        ..Content::default()
    };
    Ok(Draft { channels: names.into_iter().map(String::into).collect(), content })
}

fn text(value: &RawValue) -> Result<String, serde_json::Error> {
    serde_json::from_str(value.get())
}

/// The elements of an array. A longer array yields `MOST + 1` elements, so that the hub rejects
/// it by its own limit.
pub(super) struct Batch<T, const MAX_MESSAGES: usize>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX_MESSAGES: usize> Deserialize<'de>
    for Batch<T, MAX_MESSAGES>
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ElementsVisitor(PhantomData))
    }
}

struct ElementsVisitor<T, const MAX_MESSAGES: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX_MESSAGES: usize> Visitor<'de>
    for ElementsVisitor<T, MAX_MESSAGES>
{
    type Value = Batch<T, MAX_MESSAGES>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Batch<T, MAX_MESSAGES>, A::Error> {
        let mut elements = Vec::new();
        while elements.len() <= MAX_MESSAGES {
            match from.next_element()? {
                Some(element) => elements.push(element),
                None => return Ok(Batch(elements)),
            }
        }
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Batch(elements))
    }
}

#[cfg(test)]
mod tests {
    use bine_push::Limits;

    use super::*;

    #[test]
    fn keeps_one_element_over_the_limit() {
        assert_eq!(Limits::default().channels_per_message, MAX_NAMES);
        let kept = |count: usize| {
            let names = vec!["\"a\""; count].join(",");
            let batch = read_batch(format!("{{\"channels\":[{names}],\"data\":1}}").as_bytes());
            batch.unwrap()[0].channels.len()
        };
        assert_eq!((kept(MAX_NAMES), kept(100_000)), (MAX_NAMES, MAX_NAMES + 1));
        let messages = vec!["{\"channels\":\"a\",\"data\":1}"; 3000].join(",");
        let batch = read_batch(format!("[{messages}]").as_bytes());
        assert_eq!(batch.unwrap().len(), MAX_MESSAGES + 1);
    }
}
