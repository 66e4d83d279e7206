//! Builds the indexes of a table from its rows.

use crate::id::RowId;
use crate::state::{Definition, IndexEntries, Rows, TableState, Values, entry, id_of};
use crate::value::Value;

/// Decodes each row once and builds the table's indexes.
pub(crate) fn with_indexes(definition: &Definition, rows: Rows) -> Result<TableState, String> {
    let name = &definition.schema.name;
    let all = &definition.schema.indexes;
    let mut found: Vec<UnsortedEntries> = all.iter().map(|_| UnsortedEntries::default()).collect();
    for (id, row) in rows.iter() {
        let mut values = Values::new();
        let values = definition.read(row, &mut values);
        let values = values.ok_or_else(|| format!("the row {id} of `{name}` cannot be decoded"))?;
        for (index, found) in found.iter_mut().enumerate() {
            let has_null = all[index].columns.iter().any(|column| values[*column] == Value::Null);
            found.push(&entry(&definition.key(index, values), id), has_null);
        }
    }
    let mut indexes = Vec::new();
    for (own, mut found) in all.iter().zip(found) {
        found.sort();
        if own.is_unique
            && let Some([first, second]) = found.duplicate()
        {
            let columns =
                own.columns.iter().map(|column| &*definition.schema.columns[*column].name);
            return Err(format!(
                "`{name}` must not have two rows with the same `{}`, but {first} and {second} do: change one of them first, \
                 or remove `unique`",
                columns.collect::<Vec<_>>().join("`, `"),
            ));
        }
        indexes.push(found.into_index());
    }
    Ok(TableState { rows, indexes })
}

/// The entries of an index before they are sorted. They share one buffer: separate small
/// allocations would fragment the heap.
#[derive(Default)]
struct UnsortedEntries {
    bytes: Vec<u8>,
    refs: Vec<EntryRef>,
}

/// The position of an entry in the buffer.
struct EntryRef {
    /// The first bytes as a number, which decides most comparisons.
    head: u64,
    start: usize,
    length: u32,
    /// Whether a column of the key is null.
    has_null: bool,
}

impl UnsortedEntries {
    fn push(&mut self, entry: &[u8], has_null: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        // The entry has at least the sixteen bytes of the id.
        let head = entry.first_chunk().copied().map_or(0, u64::from_be_bytes);
        self.refs.push(EntryRef { head, start, length: entry.len() as u32, has_null });
    }

    fn entry(&self, entry_ref: &EntryRef) -> &[u8] {
        &self.bytes[entry_ref.start..][..entry_ref.length as usize]
    }

    fn sort(&mut self) {
        let mut refs = std::mem::take(&mut self.refs);
        refs.sort_unstable_by(|left, right| {
            let heads = left.head.cmp(&right.head);
            heads.then_with(|| self.entry(left).cmp(self.entry(right)))
        });
        self.refs = refs;
    }

    /// Two rows with the same key. As in SQL, null equals no other null.
    fn duplicate(&self) -> Option<[RowId; 2]> {
        let key = |entry_ref: &EntryRef| {
            self.entry(entry_ref).split_last_chunk::<16>().map(|(key, _)| key)
        };
        let mut pairs = self.refs.windows(2);
        let pair = pairs.find(|pair| !pair[0].has_null && key(&pair[0]) == key(&pair[1]))?;
        Some([&pair[0], &pair[1]].map(|entry_ref| id_of(self.entry(entry_ref))))
    }

    fn into_index(self) -> IndexEntries {
        let mut index = IndexEntries::default();
        for entry_ref in &self.refs {
            index.insert_entry(self.entry(entry_ref));
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    /// The entries of rows with these keys, which are null if they are empty.
    fn entries(keys: &[&str]) -> UnsortedEntries {
        let mut entries = UnsortedEntries::default();
        for (number, text) in (1..).zip(keys) {
            let value = if text.is_empty() { Value::Null } else { Value::Text(text) };
            let id = RowId::from_number(number);
            entries.push(&entry(&Key::of([value]), id), text.is_empty());
        }
        entries.sort();
        entries
    }

    #[test]
    fn finds_two_rows_with_the_same_key() {
        let duplicate =
            |keys: &[&str]| entries(keys).duplicate().map(|rows| rows.map(RowId::number));
        assert_eq!(duplicate(&[]), None);
        assert_eq!(duplicate(&["a", "b", "c"]), None);
        // Whatever is between them, and however much their first bytes are alike.
        assert_eq!(duplicate(&["b", "a", "b"]), Some([1, 3]));
        let long = ["a long key, 1", "a long key, 2", "a long key", "a long key, 1"];
        assert_eq!(duplicate(&long), Some([1, 4]));
        assert_eq!(duplicate(&["b", "b", "a", "a"]), Some([3, 4]));
        // Null equals no other null.
        assert_eq!(duplicate(&["", "", "a"]), None);
        assert_eq!(duplicate(&["", "a", "", "a"]), Some([2, 4]));
    }

    #[test]
    fn builds_an_index_in_the_order_of_keys() {
        let index = entries(&["b", "", "c", "a"]).into_index();
        let all = index.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let rows: Vec<_> = all.map(|(entry, _)| id_of(entry).number()).collect();
        assert_eq!(rows, [2, 4, 1, 3]);
    }
}
