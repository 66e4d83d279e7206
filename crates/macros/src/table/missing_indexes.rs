//! Constants for the indexes that a table does not have: the compiler's error about their use says how
//! to add the index.

use super::{Index, Row, TableEmitter, spelled};
use crate::token::Token;

impl Row<'_> {
    /// The name of the constant for an index.
    fn constant_of(&self, index: &Index<'_>) -> String {
        let names: Vec<&str> =
            index.columns.iter().map(|column| spelled(self.columns[*column].name)).collect();
        constant(&names.join("_"))
    }
}

fn constant(columns: &str) -> String {
    format!("BY_{}", columns.to_uppercase())
}

impl TableEmitter<'_> {
    /// Emits a constant for each column without an index.
    ///
    /// The constant has a bound that never holds. Without `for<'a>` the compiler would report the
    /// bound even if nothing uses the constant.
    pub(super) fn missing_indexes(&mut self, row: &Row<'_>) {
        let table = spelled(row.name);
        let mut known: Vec<String> =
            row.indexes.iter().map(|index| row.constant_of(index)).collect();
        for (place, column) in row.columns.iter().enumerate() {
            let name = spelled(column.name);
            let constant = constant(name);
            if known.contains(&constant) {
                continue;
            }
            let mut message = format!("the column `{name}` of `{table}` has no index");
            let mut note = format!("add `#[table(index)]` to the column `{name}`");
            if let Some(index) = row.indexes.iter().find(|index| index.columns[0] == place) {
                let longer = format!("{table}::{}", row.constant_of(index));
                message.push_str(" of its own");
                note = format!(
                    "`{longer}` begins with this column: write `find({longer}, (value,))`, or {note}"
                );
            }
            self.missing_index(row, column.name, &constant, [&message, &note]);
            known.push(constant);
        }
        if !known.iter().any(|known| known == "BY_ID") {
            let message = format!("the id of `{table}` needs no index");
            self.missing_index(
                row,
                row.name,
                "BY_ID",
                [&message, "read a row by its id: `get(id)`"],
            );
        }
    }

    /// Emits a constant whose use is an error, with a message and a note. The error points at
    /// `column` too.
    fn missing_index(&mut self, row: &Row<'_>, column: &Token, constant: &str, texts: [&str; 2]) {
        let [message, note] = texts;
        self.code(&format!(
            "#[allow(dead_code, unused_lifetimes)] const _: () = {{ #[diagnostic::on_unimplemented(\
             message = {message:?}, label = \"no index\", note = {note:?})] pub trait Indexed {{}} \
             #[doc(hidden)] impl"
        ));
        self.name(row.name);
        self.code("where for<'a> Self:");
        self.expansion.owned(column.origin, "Indexed");
        self.code(&format!("{{ #[doc(hidden)] pub const {constant}: () = (); }} }};"));
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::Sample;
    use crate::table::table;

    /// Checks the constants of a table, in order. Those of missing indexes follow a `-`.
    #[track_caller]
    fn check(item: &str, expected: &str) {
        let sample = Sample::new(item);
        let expansion = table(&sample.tokens);
        assert_eq!(sample.report(&expansion.faults), "");
        let spelled = sample.spell(&expansion);
        let mut constants = Vec::new();
        for part in spelled.split("const ").skip(1).filter(|part| part.starts_with("BY_")) {
            let (name, after) = part.split_once(':').expect("a type");
            let missing = if after.starts_with(" ()") { "-" } else { "" };
            constants.push(format!("{missing}{}", name.trim()));
        }
        assert_eq!(constants.join(" "), expected);
    }

    #[test]
    fn each_column_has_a_constant() {
        check(
            "#[table(index(a, b))] struct A { id: Id<A>, #[table(unique)] a: u8, b: u8, r#type: u8 }",
            "BY_A BY_A_B -BY_B -BY_TYPE -BY_ID",
        );
    }

    #[test]
    fn constants_of_missing_indexes_hide_no_index() {
        check(
            "#[table(index(a, b))] struct A { id: Id<A>, a: u8, b: u8, a_b: u8, B: u8 }",
            "BY_A_B -BY_A -BY_B -BY_ID",
        );
    }
}
