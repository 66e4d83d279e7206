//! The shared state as a pure machine: equal records in equal order give equal states.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::record::{EntryChange, MAX_CHANGES, ROSTER_BLOCK, VALUE_BLOCK, block, parse, text};

/// The rosters and values that all nodes share.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct StateMachine {
    /// The entries of each place, by their keys. Both orders decide the order of changes when a node
    /// ends, so they are the same on all nodes.
    rosters: BTreeMap<Arc<str>, BTreeMap<Arc<str>, RosterEntry>>,
    values: BTreeMap<Arc<str>, Arc<str>>,
    /// The number of entries in all rosters.
    entries: usize,
}

/// An entry of a roster.
#[derive(PartialEq, Eq, Debug)]
struct RosterEntry {
    value: Arc<str>,
    /// The nodes that have the entry, sorted.
    nodes: Vec<Arc<str>>,
}

/// A change in a roster that at least one reader can see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RosterChange {
    pub(crate) place: Arc<str>,
    pub(crate) key: Arc<str>,
    /// The value of the entry, the last one of an entry that has gone.
    pub(crate) value: Arc<str>,
    pub(crate) kind: RosterChangeKind,
    /// The number of entries at this place after the change.
    pub(crate) count: usize,
}

/// What has happened to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RosterChangeKind {
    /// The first node has added it.
    Added,
    /// Its value has changed.
    Replaced,
    /// The last node has removed it.
    Removed,
}

/// The most entries in all rosters.
const MAX_ENTRIES: usize = 1 << 20;
/// The most bytes of a place, a key and a value together.
const MAX_ENTRY: usize = 4 << 10;
/// The most entries in one block, which then has at most 5 MB, whatever JSON escapes.
const MAX_OF_BLOCK: usize = 200;
/// The most values, and the most bytes of one.
const MAX_VALUES: usize = 10_000;
const MAX_VALUE: usize = 256 << 10;

impl StateMachine {
    /// Applies changes of a node to the roster of a place. A change beyond a bound has no effect.
    pub(super) fn change(
        &mut self,
        node: &Arc<str>,
        place: &Arc<str>,
        changes: Vec<EntryChange>,
    ) -> Vec<RosterChange> {
        let mut seen = Vec::new();
        for (key, value) in changes {
            let change = match value {
                Some(value) => self.add(node, place, &key, &value),
                None => self.remove(node, place, &key),
            };
            seen.extend(change);
        }
        seen
    }

    fn add(
        &mut self,
        node: &Arc<str>,
        place: &Arc<str>,
        key: &Arc<str>,
        value: &Arc<str>,
    ) -> Option<RosterChange> {
        if !fits(place, key, value) {
            return None;
        }
        let known = self.rosters.get_mut(place).and_then(|roster| roster.get_mut(key));
        let kind = match known {
            Some(entry) => {
                if let Err(at) = entry.nodes.binary_search(node) {
                    entry.nodes.insert(at, Arc::clone(node));
                }
                if entry.value == *value {
                    return None;
                }
                entry.value = Arc::clone(value);
                RosterChangeKind::Replaced
            }
            None if self.entries >= MAX_ENTRIES => return None,
            None => {
                let entry = RosterEntry { value: Arc::clone(value), nodes: vec![Arc::clone(node)] };
                let roster = self.rosters.entry(Arc::clone(place)).or_default();
                roster.insert(Arc::clone(key), entry);
                self.entries += 1;
                RosterChangeKind::Added
            }
        };
        let (place, key, value) = (Arc::clone(place), Arc::clone(key), Arc::clone(value));
        let count = self.count(&place);
        Some(RosterChange { place, key, value, kind, count })
    }

    fn remove(
        &mut self,
        node: &Arc<str>,
        place: &Arc<str>,
        key: &Arc<str>,
    ) -> Option<RosterChange> {
        let roster = self.rosters.get_mut(place)?;
        let entry = roster.get_mut(key)?;
        let at = entry.nodes.binary_search(node).ok()?;
        entry.nodes.remove(at);
        if !entry.nodes.is_empty() {
            return None;
        }
        let RosterEntry { value, .. } = roster.remove(key)?;
        self.entries -= 1;
        let count = roster.len();
        if count == 0 {
            self.rosters.remove(place);
        }
        let (place, key) = (Arc::clone(place), Arc::clone(key));
        Some(RosterChange { place, key, value, kind: RosterChangeKind::Removed, count })
    }

    /// Removes the first [`MAX_CHANGES`] entries of a node that has ended.
    pub(super) fn end(&mut self, node: &Arc<str>) -> Vec<RosterChange> {
        let own: Vec<_> = self
            .entries_of(node)
            .take(MAX_CHANGES)
            .map(|(place, key)| (Arc::clone(place), Arc::clone(key)))
            .collect();
        own.iter().filter_map(|(place, key)| self.remove(node, place, key)).collect()
    }

    fn entries_of(&self, node: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.rosters.iter().flat_map(move |(place, roster)| {
            let own = roster.iter().filter(move |(_, entry)| entry.has(node));
            own.map(move |(key, _)| (place, key))
        })
    }

    /// Whether a node has entries.
    pub(super) fn has_entries_of(&self, node: &str) -> bool {
        self.entries_of(node).next().is_some()
    }

    /// The names of all nodes that have entries.
    pub(super) fn nodes(&self) -> Vec<Arc<str>> {
        let entries = self.rosters.values().flat_map(BTreeMap::values);
        let mut nodes: Vec<&Arc<str>> = Vec::new();
        for node in entries.flat_map(|entry| &entry.nodes) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes.into_iter().map(Arc::clone).collect()
    }

    /// The number of entries at a place.
    pub(super) fn count(&self, place: &str) -> usize {
        self.rosters.get(place).map_or(0, BTreeMap::len)
    }

    /// The entries at a place, by their keys.
    pub(super) fn roster(&self, place: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let entries = self.rosters.get(place).into_iter().flatten();
        entries.map(|(key, entry)| (key, &entry.value))
    }

    /// All entries, as if they were added now.
    pub(super) fn all(&self) -> Vec<RosterChange> {
        let kind = RosterChangeKind::Added;
        let changes = self.rosters.iter().flat_map(|(place, roster)| {
            roster.iter().map(|(key, entry)| {
                let (place, key, value) =
                    (Arc::clone(place), Arc::clone(key), Arc::clone(&entry.value));
                RosterChange { place, key, value, kind, count: roster.len() }
            })
        });
        changes.collect()
    }

    /// Replaces a value. Returns false if it is beyond a bound.
    pub(super) fn set(&mut self, name: Arc<str>, json: Arc<str>) -> bool {
        let is_known = self.values.contains_key(&name);
        let fits = name.len() + json.len() <= MAX_VALUE;
        if !fits || !is_known && self.values.len() >= MAX_VALUES {
            return false;
        }
        self.values.insert(name, json);
        true
    }

    /// The JSON of a value.
    pub(super) fn value(&self, name: &str) -> Option<&Arc<str>> {
        self.values.get(name)
    }

    /// The whole state as blocks.
    pub(super) fn blocks(&self) -> Vec<Vec<u8>> {
        let entries: Vec<_> = self
            .rosters
            .iter()
            .flat_map(|(place, roster)| {
                roster.iter().map(move |(key, RosterEntry { value, nodes })| {
                    let nodes: Vec<&str> = nodes.iter().map(|node| &**node).collect();
                    json!([**place, **key, **value, nodes])
                })
            })
            .collect();
        let rosters = entries.chunks(MAX_OF_BLOCK).map(|part| block(ROSTER_BLOCK, &part.into()));
        let values =
            self.values.iter().map(|(name, json)| block(VALUE_BLOCK, &json!([**name, **json])));
        rosters.chain(values).collect()
    }

    /// Loads a block of a snapshot; `None`: it is invalid.
    pub(super) fn load(&mut self, bytes: &[u8]) -> Option<()> {
        if let Some(value) = parse(VALUE_BLOCK, bytes) {
            let [name, json] = value.as_array()?.first_chunk::<2>()?;
            self.values.insert(text(name)?, text(json)?);
            return Some(());
        }
        for entry in parse(ROSTER_BLOCK, bytes)?.as_array()? {
            let [place, key, value, nodes] = entry.as_array()?.first_chunk::<4>()?;
            let nodes = nodes.as_array()?.iter().map(text).collect::<Option<Vec<_>>>()?;
            let entry = RosterEntry { value: text(value)?, nodes };
            let roster = self.rosters.entry(text(place)?).or_default();
            self.entries += usize::from(roster.insert(text(key)?, entry).is_none());
        }
        Some(())
    }
}

impl RosterEntry {
    fn has(&self, node: &str) -> bool {
        self.nodes.binary_search_by(|own| (**own).cmp(node)).is_ok()
    }
}

/// Whether an entry of a roster is within its bound.
pub(super) const fn fits(place: &str, key: &str, value: &str) -> bool {
    place.len() + key.len() + value.len() <= MAX_ENTRY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(key: &str, value: &str) -> EntryChange {
        (key.into(), Some(value.into()))
    }

    /// What a reader sees: `+ann 1`, with the count at the end.
    fn seen(changes: &[RosterChange]) -> String {
        let one = |change: &RosterChange| {
            let sign = match change.kind {
                RosterChangeKind::Added => '+',
                RosterChangeKind::Replaced => '=',
                RosterChangeKind::Removed => '-',
            };
            format!("{sign}{} {}", change.key, change.count)
        };
        changes.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn entry_stays_until_its_last_node_has_removed_it() {
        let mut machine = StateMachine::default();
        let (a, b, place): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "b".into(), "x".into());
        assert_eq!(
            seen(&machine.change(&a, &place, vec![add("ann", ""), add("bob", "")])),
            "+ann 1, +bob 2"
        );
        assert_eq!(seen(&machine.change(&b, &place, vec![add("ann", "")])), "");
        assert_eq!(seen(&machine.change(&b, &place, vec![add("ann", "2")])), "=ann 2");
        assert_eq!(seen(&machine.change(&a, &place, vec![("ann".into(), None)])), "");
        assert_eq!(seen(&machine.change(&a, &place, vec![("ann".into(), None)])), "");
        assert_eq!(machine.nodes(), [b.clone(), a.clone()]);
        assert_eq!(seen(&machine.end(&b)), "-ann 1");
        assert_eq!(seen(&machine.end(&b)), "");
        assert!(machine.has_entries_of("a") && !machine.has_entries_of("b"));
        assert_eq!(seen(&machine.end(&a)), "-bob 0");
        assert_eq!(machine, StateMachine::default());
    }

    #[test]
    fn end_of_a_node_with_many_entries_takes_several_records() {
        let mut machine = StateMachine::default();
        let (a, place): (Arc<str>, Arc<str>) = ("a".into(), "x".into());
        for part in 0..3 {
            let keys = (0..MAX_CHANGES).map(|key| add(&format!("{part}-{key}"), "")).collect();
            machine.change(&a, &place, keys);
        }
        machine.change(&a, &"y".into(), vec![add("k", "")]);
        let ends: Vec<usize> = (0..5).map(|_| machine.end(&a).len()).collect();
        assert_eq!(ends, [MAX_CHANGES, MAX_CHANGES, MAX_CHANGES, 1, 0]);
    }

    #[test]
    fn snapshot_of_any_state_loads_as_the_same_state() {
        let mut machine = StateMachine::default();
        for number in 0..2_000_u32 {
            let node = format!("n{}", number % 3).into();
            let place = format!("p{}", number % 7).into();
            let key = format!("k{}", number % 1_301);
            machine.change(&node, &place, vec![add(&key, &number.to_string())]);
            if number % 5 == 0 {
                machine.change(&node, &place, vec![(key.into(), None)]);
            }
            machine.set(format!("v{}", number % 11).into(), number.to_string().into());
        }
        let mut loaded = StateMachine::default();
        for bytes in machine.blocks() {
            loaded.load(&bytes).unwrap();
            assert_eq!(StateMachine::default().load(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(loaded, machine);
    }

    #[test]
    fn changes_beyond_a_bound_have_no_effect() {
        let mut machine = StateMachine::default();
        let long = "x".repeat(MAX_ENTRY);
        assert!(machine.change(&"a".into(), &"x".into(), vec![add("k", &long)]).is_empty());
        assert!(!machine.set("v".into(), "x".repeat(MAX_VALUE).into()));
        assert_eq!(machine, StateMachine::default());
    }
}
