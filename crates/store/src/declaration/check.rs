//! Checks of schemas while the program runs. For a row type the compiler and the derive macro
//! ensure the same.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Index;

    fn of(column: Column) -> Schema {
        Schema { columns: vec![column], ..Schema::new("t") }
    }

    fn integer(min: i128, max: i128) -> Schema {
        of(Column::new("n", Kind::Integer { min, max }))
    }

    fn words(count: usize) -> Schema {
        let words: Vec<_> = (0..count).map(|number| number.to_string().into()).collect();
        of(Column::new("w", Kind::Enum(words.into())))
    }

    #[track_caller]
    fn rejects(schema: &Schema, why: &str) {
        let error = check(schema).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn accepts_integers_of_64_bits() {
        for (min, max) in [(MIN_INTEGER, MAX_INTEGER), (3, 3), (-4, -4)] {
            assert_eq!(check(&integer(min, max)), Ok(()));
        }
        for (min, max) in [(4, 3), (MIN_INTEGER - 1, 0), (0, MAX_INTEGER + 1)] {
            rejects(&integer(min, max), "`t.n` needs limits that 64 bits can hold");
        }
    }

    #[test]
    fn accepts_as_many_words_as_two_bytes_count() {
        assert_eq!((check(&words(1)), check(&words(1 << 16))), (Ok(()), Ok(())));
        rejects(&words((1 << 16) + 1), "`t.w` needs from 1 to 65536 different words");
        let twice = vec!["a".into(), "b".into(), "a".into()];
        rejects(&of(Column::new("w", Kind::Enum(twice.into()))), "different words");
    }

    #[test]
    fn accepts_limits_in_ascending_order() {
        let length = |limits| of(Column { length: Some(limits), ..Column::new("x", Kind::Text) });
        let range = |limits| of(Column { range: Some(limits), ..Column::new("x", Kind::Float) });
        for valid in [length((2, 2)), length((2, 3)), range((2.0, 2.0)), range((-1.0, 3.0))] {
            assert_eq!(check(&valid), Ok(()));
        }
        rejects(&length((3, 2)), "`t.x` needs its shortest length first");
        for limits in [(3.0, 2.0), (f64::NAN, 2.0), (2.0, f64::NAN)] {
            rejects(&range(limits), "`t.x` needs its least number first");
        }
    }

    #[test]
    fn bounds_the_number_of_columns() {
        let columns = |count: usize| {
            let columns = (0..count).map(|number| Column::new(format!("c{number}"), Kind::Bool));
            Schema { columns: columns.collect(), ..Schema::new("t") }
        };
        assert_eq!(check(&columns(1 << 10)), Ok(()));
        rejects(&columns((1 << 10) + 1), "the table `t` may have at most 1024 columns");
    }

    #[test]
    fn requires_names() {
        rejects(&Schema::new(""), "a table needs a name");
        rejects(&of(Column::new("", Kind::Text)), "a column of `t` has no name");
    }

    #[test]
    fn accepts_indexes_of_different_columns() {
        let columns = vec![Column::new("a", Kind::Text), Column::new("b", Kind::Text)];
        let of = |positions: &[usize]| {
            let indexes = vec![Index { columns: positions.to_vec(), is_unique: false }];
            Schema { columns: columns.clone(), indexes, ..Schema::new("t") }
        };
        assert_eq!((check(&of(&[1])), check(&of(&[1, 0]))), (Ok(()), Ok(())));
        for wrong in [&[][..], &[2], &[0, 0], &[0, 2]] {
            rejects(&of(wrong), "an index of `t` needs columns of the table, each once");
        }
    }
}
