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
pub(super) fn shared_region_key(store: &Store, own: [u8; 16]) -> Result<[u8; 16], String> {
    let mut schema = Schema::new(TABLE);
    schema.columns.push(Column { is_private: true, ..Column::of::<String>(DIGITS) });
    let declared = store.declare(&[schema]).map_err(|error| error.to_string())?;
    declared.wait().map_err(|error| error.to_string())?;
    if let Some(key) = read(store) {
        return Ok(key);
    }
    let digits = format!("{:032x}", u128::from_be_bytes(own));
    let mut change = store.begin();
    let inserted = change.insert_values(TABLE, &[Value::Text(&digits)]);
    inserted.map_err(|error| error.to_string())?;
    store.commit(change).and_then(Pending::wait).map_err(|error| error.to_string())?;
    Ok(read(store).unwrap_or(own))
}

/// The least key, so that nodes that see the same rows have the same one.
fn read(store: &Store) -> Option<[u8; 16]> {
    let snapshot = store.read();
    let rows = snapshot.table_named(TABLE)?.select().rows();
    let keys = rows.iter().filter_map(|row| match row.values().first() {
        Some(Value::Text(digits)) => key_of(digits),
        _ => None,
    });
    keys.min()
}

fn key_of(digits: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32);
    number.map(u128::to_be_bytes)
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
        assert_eq!((key_of("ab"), key_of(&"x".repeat(32))), (None, None));
    }
}
