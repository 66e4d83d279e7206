//! The rules for channels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::histories::history::{Delivered, History, Operation, Outcome, Work};

pub(super) fn check(history: &History, broken: &mut Vec<String>) {
    let Some(first) = history.finals.first() else { return };
    for other in &history.finals[1..] {
        if other.channels != first.channels {
            let place = first_difference(&first.channels, &other.channels);
            let (one, two) = (first.node, other.node);
            broken.push(format!("nodes {one} and {two} have different messages: {place}"));
        }
    }
    let channels: BTreeSet<&str> = publications(history)
        .map(|operation| &*operation.channel)
        .chain(first.channels.keys().map(String::as_str))
        .collect();
    for channel in channels {
        let order = first.channels.get(channel).map_or(&[][..], Vec::as_slice);
        check_order(history, channel, order, broken);
        for log in history.logs.iter().filter(|log| log.channel == channel) {
            check_log(&log.name, &log.messages, order, broken);
        }
    }
}

fn publications(history: &History) -> impl Iterator<Item = &Operation> {
    history.operations.iter().filter(|operation| operation.work == Work::Publish)
}

/// Compares the messages of a channel with its publications.
fn check_order(history: &History, channel: &str, order: &[Delivered], broken: &mut Vec<String>) {
    let own = || publications(history).filter(|operation| operation.channel == channel);
    let by_id: HashMap<&str, &Operation> =
        own().map(|operation| (&*operation.id, operation)).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, message) in order.iter().enumerate() {
        let id = &*message.id;
        match by_id.get(id).map(|operation| operation.outcome) {
            None => broken.push(format!("{channel}: message {id} was never published")),
            Some(Outcome::Refused) => {
                broken.push(format!("{channel}: message {id} was refused and is there"));
            }
            Some(_) => {}
        }
        if places.insert(id, place).is_some() {
            broken.push(format!("{channel}: message {id} is there twice"));
        }
    }
    for pair in order.windows(2) {
        if pair[0].cursor >= pair[1].cursor {
            let (one, two) = (&pair[0].id, &pair[1].id);
            broken.push(format!("{channel}: the cursor of {two} is not above that of {one}"));
        }
    }
    let acknowledged = || own().filter(|operation| operation.outcome == Outcome::Acknowledged);
    for operation in acknowledged() {
        let id = &*operation.id;
        let Some(place) = places.get(id) else {
            broken.push(format!("{channel}: message {id} was acknowledged and is lost"));
            continue;
        };
        let cursor = &order[*place].cursor;
        if operation.cursor.is_some() && operation.cursor != *cursor {
            broken.push(format!(
                "{channel}: message {id} has the cursor {cursor:?}, and was acknowledged with {:?}",
                operation.cursor
            ));
        }
        let too_early = own().find(|later| {
            later.begun > operation.ended && places.get(&*later.id).is_some_and(|at| at < place)
        });
        if let Some(later) = too_early {
            let later = &later.id;
            broken.push(format!(
                "{channel}: message {later} precedes {id}, which was acknowledged before {later} began"
            ));
        }
    }
}

/// Compares the messages that a subscriber has received with those of its channel.
fn check_log(name: &str, log: &[Delivered], order: &[Delivered], broken: &mut Vec<String>) {
    let mut received = BTreeSet::new();
    if let Some(twice) = log.iter().find(|message| !received.insert(&message.id)) {
        let id = &twice.id;
        broken.push(format!("subscriber {name}: message {id} was received twice"));
        return;
    }
    if let Some(lost) = order.iter().find(|message| !received.contains(&message.id)) {
        let (id, count, all) = (&lost.id, log.len(), order.len());
        broken.push(format!(
            "subscriber {name}: message {id} was not received ({count} of {all} were)"
        ));
        return;
    }
    for (place, message) in log.iter().enumerate() {
        let expected = order.get(place);
        if expected.is_none_or(|expected| expected.id != message.id) {
            let (id, expected) = (&message.id, expected.map(|expected| &expected.id));
            broken.push(format!(
                "subscriber {name}: message {id} was received at place {place} instead of {expected:?}"
            ));
            return;
        }
        let cursor = expected.and_then(|expected| expected.cursor.as_ref());
        if message.cursor.is_some() && message.cursor.as_ref() != cursor {
            let (id, own) = (&message.id, &message.cursor);
            broken.push(format!(
                "subscriber {name}: message {id} has the cursor {own:?} instead of {cursor:?}"
            ));
            return;
        }
    }
}

fn first_difference(
    one: &BTreeMap<String, Vec<Delivered>>,
    two: &BTreeMap<String, Vec<Delivered>>,
) -> String {
    for (channel, messages) in one {
        let others = two.get(channel).map_or(&[][..], Vec::as_slice);
        let length = messages.len().max(others.len());
        let place = (0..length).find(|place| messages.get(*place) != others.get(*place));
        if let Some(place) = place {
            let [one, two] = [messages.get(place), others.get(place)];
            return format!("{channel} has at place {place} {one:?} and {two:?}");
        }
    }
    "a channel is missing".to_owned()
}
