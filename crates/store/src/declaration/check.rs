//! Checks of schemas that are made while the program runs. For a row type the compiler and the
//! derive macro ensure the same.

use std::collections::HashSet;

use crate::schema::{Column, Schema};
use crate::value::Kind;

/// The most words of an enum: a row stores the position in two bytes.
const MAX_WORDS: usize = 1 << 16;
/// The most columns of a table, so that a row of nulls stays small.
const MAX_COLUMNS: usize = 1 << 10;
/// The integers that a row and a key can hold.
const MIN_INTEGER: i128 = i64::MIN as i128;
const MAX_INTEGER: i128 = u64::MAX as i128;

/// Checks that a schema describes a table.
///
/// # Errors
///
/// The reason why it does not. The message names the fix.
pub(super) fn check(schema: &Schema) -> Result<(), String> {
    let table = &schema.name;
    if table.is_empty() {
        return Err("a table needs a name".to_owned());
    }
    if schema.columns.len() > MAX_COLUMNS {
        return Err(format!("the table `{table}` may have at most {MAX_COLUMNS} columns"));
    }
    let mut names = HashSet::new();
    for column in &schema.columns {
        let name = &column.name;
        if name.is_empty() {
            return Err(format!("a column of `{table}` has no name: name it"));
        }
        if name == "id" {
            return Err(format!(
                "the table `{table}` declares a column `id`, which each table has: remove it"
            ));
        }
        if !names.insert(name) {
            return Err(format!(
                "the table `{table}` has two columns `{name}`: rename one of them"
            ));
        }
        check_column(column).map_err(|reason| format!("`{table}.{name}` {reason}"))?;
    }
    for index in &schema.indexes {
        let columns: HashSet<usize> = index.columns.iter().copied().collect();
        let is_valid = !columns.is_empty()
            && columns.len() == index.columns.len()
            && columns.iter().all(|column| *column < schema.columns.len());
        if !is_valid {
            return Err(format!("an index of `{table}` needs columns of the table, each once"));
        }
    }
    Ok(())
}

fn check_column(column: &Column) -> Result<(), &'static str> {
    match &column.kind {
        Kind::Integer { min, max } if min > max || *min < MIN_INTEGER || *max > MAX_INTEGER => {
            return Err("needs limits that 64 bits can hold, the least first");
        }
        Kind::Enum(words) => {
            let distinct: HashSet<_> = words.iter().collect();
            if words.is_empty() || words.len() > MAX_WORDS || distinct.len() < words.len() {
                return Err("needs from 1 to 65536 different words");
            }
        }
        _ => {}
    }
    if column.length.is_some_and(|(least, most)| least > most) {
        return Err("needs its shortest length first");
    }
    // NaN bounds no range.
    let is_range = |(least, most): (f64, f64)| least <= most;
    if column.range.is_some_and(|range| !is_range(range)) {
        return Err("needs its least number first");
    }
    Ok(())
}
