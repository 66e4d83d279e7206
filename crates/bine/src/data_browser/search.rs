//! Searches for rows by the text of a column, with a bound on rows and time.

use std::time::{Duration, Instant};

use super::cell::{shown, text_of};
use crate::store::{Kind, RowId, RowView, TableView, Value};

/// A condition on the texts of a row.
#[derive(Clone, Debug)]
pub(super) struct TextCondition {
    /// The position of the column; `None`: any column that may be shown, or the id.
    pub(super) column: Option<usize>,
    pub(super) comparison: Comparison,
    /// The text to look for. Without `Is`, letters of ASCII in lower case.
    pub(super) text: String,
}

/// How a text is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Is,
    /// In upper or lower case.
    Starts,
    /// In upper or lower case.
    Contains,
}

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchBounds {
    pub(super) rows: usize,
    pub(super) time: Duration,
    pub(super) found: usize,
}

/// The result of one search.
#[derive(Debug)]
pub(super) struct SearchResult<'s> {
    pub(super) rows: Vec<RowView<'s>>,
    pub(super) examined: usize,
    /// The oldest row that was examined, if older rows remain.
    pub(super) stopped_at: Option<RowId>,
}

/// The bounds of a search by a client.
pub(super) const BOUNDS: SearchBounds =
    SearchBounds { rows: 50_000, time: Duration::from_millis(250), found: 50 };
/// The rows between two looks at the clock. A row has at most 8 MB.
const ROWS_PER_LOOK: usize = 16;

/// Examines the newest rows that are older than `before`.
pub(super) fn search<'s>(
    table: TableView<'s>,
    condition: &TextCondition,
    before: Option<RowId>,
    bounds: SearchBounds,
) -> SearchResult<'s> {
    let begun = Instant::now();
    let (mut rows, mut examined) = (Vec::new(), 0);
    let mut all = table.rows(None, before).rev();
    let mut buffer = String::new();
    while let Some(row) = all.next() {
        examined += 1;
        let id = row.id;
        if condition.admits(table, &row, &mut buffer) {
            rows.push(row);
        }
        let is_late = examined % ROWS_PER_LOOK == 0 && begun.elapsed() >= bounds.time;
        if rows.len() >= bounds.found || examined >= bounds.rows || is_late {
            let is_more = all.next().is_some();
            return SearchResult { rows, examined, stopped_at: is_more.then_some(id) };
        }
    }
    SearchResult { rows, examined, stopped_at: None }
}

impl TextCondition {
    fn admits(&self, table: TableView<'_>, row: &RowView<'_>, buffer: &mut String) -> bool {
        let columns = &table.schema().columns;
        let mut check =
            |value: Value<'_>, kind: &Kind| self.admits_text(&text_of(value, kind), buffer);
        match self.column {
            Some(column) => check(row.values()[column], &columns[column].kind),
            None => {
                shown(table.schema()).any(|(place, own)| check(row.values()[place], &own.kind))
                    || self.admits_text(&row.id.to_string(), buffer)
            }
        }
    }

    fn admits_text(&self, text: &str, buffer: &mut String) -> bool {
        if self.comparison == Comparison::Is {
            return text == self.text;
        }
        buffer.clear();
        buffer.push_str(text);
        buffer.make_ascii_lowercase();
        match self.comparison {
            Comparison::Starts => buffer.starts_with(&*self.text),
            _ => buffer.contains(&*self.text),
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use bine_macros::Table;

    use super::*;
    use crate::store::{Id, Options, Store};
    use crate::text::Text;

    #[derive(Table)]
    #[table(crate = crate, name = "searched_note")]
    struct SearchedNote {
        id: Id<SearchedNote>,
        text: Text,
        #[table(private)]
        secret: Text,
    }

    fn store() -> Store {
        let store = Store::in_memory(Options::new().table::<SearchedNote>()).unwrap();
        let insert = |number: u32| {
            let (text, secret) = (format!("Note {number}").into(), "hops".into());
            store.insert(SearchedNote { id: Id::unassigned(), text, secret }).wait().unwrap();
        };
        (0..100).for_each(insert);
        store
    }

    fn condition(comparison: Comparison, text: &str) -> TextCondition {
        TextCondition { column: None, comparison, text: text.to_owned() }
    }

    fn texts(found: &SearchResult<'_>) -> Vec<String> {
        let text = |row: &RowView<'_>| text_of(row.values()[0], &Kind::Text).into_owned();
        found.rows.iter().map(text).collect()
    }

    #[test]
    fn continues_where_a_bounded_search_has_stopped() {
        let snapshot = store().read();
        let table = snapshot.table_named("searched_note").unwrap();
        let bounds = SearchBounds { rows: 30, ..BOUNDS };
        let (mut before, mut all, mut searches) = (None, Vec::new(), 0);
        loop {
            let found = search(table, &condition(Comparison::Contains, "e 1"), before, bounds);
            assert!(found.examined <= bounds.rows);
            all.extend(texts(&found));
            searches += 1;
            before = found.stopped_at;
            if before.is_none() {
                break;
            }
        }
        let expected: Vec<String> =
            (10..20).rev().chain([1]).map(|number| format!("Note {number}")).collect();
        assert_eq!((all, searches), (expected, 4));
    }

    #[test]
    fn stops_when_its_time_is_over() {
        let snapshot = store().read();
        let table = snapshot.table_named("searched_note").unwrap();
        let bounds = SearchBounds { time: Duration::ZERO, ..BOUNDS };
        let found = search(table, &condition(Comparison::Contains, "absent"), None, bounds);
        assert_eq!((found.examined, found.stopped_at.is_some()), (ROWS_PER_LOOK, true));
    }

    #[test]
    fn compares_without_case_and_never_with_private_columns() {
        let snapshot = store().read();
        let table = snapshot.table_named("searched_note").unwrap();
        let find = |comparison, text: &str| {
            texts(&search(table, &condition(comparison, text), None, BOUNDS)).len()
        };
        assert_eq!(find(Comparison::Starts, "note 9"), 11);
        assert_eq!(find(Comparison::Is, "Note 9"), 1);
        assert_eq!(find(Comparison::Is, "note 9"), 0);
        assert_eq!(find(Comparison::Contains, "hops"), 0);
    }
}
