//! The key of region hashes that several nodes share, in a table.

use crate::store::{Column, Pending, Schema, Store, Value};

/// The table: the digits of a key in each row. Pages and dumps of the data browser do not show it.
const TABLE: &str = "region_key";
/// The only column.
const DIGITS: &str = "digits";

/// Returns the key of all nodes, or stores this one if there is none.
///
/// So a page that one node has rendered continues at a second one, which sends only the regions that
/// differ. Two nodes that create the table at the same time may use different keys until one of them
/// restarts; then a page that moves between them receives its regions again.
///
/// # Errors
///
/// The store rejects the table or the key.
pub(super) fn shared_region_key<const N: usize>(
    store: &Store,
    own: [u8; N],
) -> Result<[u8; N], String> {
    let mut schema = Schema::new(TABLE);
    schema.columns.push(Column { is_private: true, ..Column::of::<String>(DIGITS) });
    let declared = store.declare(&[schema]).map_err(|error| error.to_string())?;
    declared.wait().map_err(|error| error.to_string())?;
    if let Some(key) = read(store) {
        return Ok(key);
    }
    let digits: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut change = store.begin();
    let inserted = change.insert_values(TABLE, &[Value::Text(&digits)]);
    inserted.map_err(|error| error.to_string())?;
    store.commit(change).and_then(Pending::wait).map_err(|error| error.to_string())?;
    Ok(read(store).unwrap_or(own))
}

/// The least key, so that nodes that see the same rows have the same one.
fn read<const N: usize>(store: &Store) -> Option<[u8; N]> {
    let snapshot = store.read();
    let rows = snapshot.table_named(TABLE)?.select().rows();
    let keys = rows.iter().filter_map(|row| match row.values().first() {
        Some(Value::Text(digits)) => key_of(digits),
        _ => None,
    });
    keys.min()
}

fn key_of<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Options;

    #[test]
    fn first_key_is_that_of_all_nodes() {
        let store = Store::in_memory(Options::new()).unwrap();
        assert_eq!(shared_region_key(&store, [0xab; 16]), Ok([0xab; 16]));
        assert_eq!(shared_region_key(&store, [7; 16]), Ok([0xab; 16]));
        assert_eq!(key_of::<16>("0xff"), None);
    }
}
