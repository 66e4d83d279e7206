//! Markup of rows that was written before, while the rows are the same.
//!
//! Most requests read the same data as earlier ones: the newest messages of a forum, and in each
//! open page again after a change. If the rows and the query are those of an earlier call, and the
//! markup depends on nothing else, it is not written again.

use std::cell::RefCell;
use std::collections::VecDeque;

use bine_script::Markup;

use super::queries::ScriptQuery;
use crate::store::{TableRead, TableView};

/// The most lists that are kept.
const MAX_LISTS: usize = 64;
/// The most bytes of all lists.
const MAX_BYTES: usize = 256 << 10;
/// The most bytes of a list: one may not take the room of all other lists.
const MAX_LIST: usize = MAX_BYTES / 8;
/// The most bytes of the values in a query.
const MAX_QUERY: usize = 256;

/// The last lists of rows as markup. The one that was used last is at the end.
#[derive(Debug, Default)]
pub(super) struct KeptRows(RefCell<Lists>);

#[derive(Debug, Default)]
struct Lists {
    lists: VecDeque<(RowList, KeptList)>,
    bytes: usize,
}

/// The inputs of a list's markup, besides the rows.
#[derive(Debug, PartialEq)]
pub(super) struct RowList {
    /// The position of the table in the store.
    pub(super) table: usize,
    /// The number of the row template in the script.
    pub(super) template: usize,
    pub(super) limit: usize,
    pub(super) query: ScriptQuery,
}

#[derive(Debug)]
struct KeptList {
    read: TableRead,
    markup: Markup,
}

impl KeptRows {
    /// The markup of a list whose rows are the same as when it was kept. The reads of the query are
    /// recorded, as if it had run.
    pub(super) fn find(&self, list: &RowList, view: &TableView<'_>) -> Option<Markup> {
        let lists = &mut self.0.borrow_mut().lists;
        let place = lists.iter().rposition(|(own, _)| own == list)?;
        if !view.repeat(&lists[place].1.read) {
            return None;
        }
        if place + 1 != lists.len() {
            let found = lists.remove(place)?;
            lists.push_back(found);
        }
        lists.back().map(|(_, kept)| kept.markup.clone())
    }

    /// Keeps the markup of a list in the place of an earlier one. Others may have to go.
    pub(super) fn keep(&self, list: RowList, read: TableRead, markup: &Markup) {
        if markup.len() > MAX_LIST || list.query.size() > MAX_QUERY {
            return;
        }
        let own = &mut *self.0.borrow_mut();
        if let Some(place) = own.lists.iter().rposition(|(own, _)| *own == list) {
            own.remove(place);
        }
        while own.lists.len() >= MAX_LISTS || own.bytes + markup.len() > MAX_BYTES {
            own.remove(0);
        }
        own.bytes += markup.len();
        own.lists.push_back((list, KeptList { read, markup: markup.clone() }));
    }
}

impl Lists {
    fn remove(&mut self, place: usize) {
        if let Some((_, removed)) = self.lists.remove(place) {
            self.bytes -= removed.markup.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Column, Options, Schema, Store, Value};

    fn store() -> Store {
        let store = Store::in_memory(Options::new()).unwrap();
        let columns = vec![Column::of::<i64>("n")];
        let schema = Schema { columns, ..Schema::new("rows") };
        store.declare(&[schema]).unwrap().wait().unwrap();
        store
    }

    fn list(limit: usize) -> RowList {
        RowList { table: 0, template: 7, limit, query: ScriptQuery::of_all() }
    }

    fn read(view: &TableView<'_>) -> TableRead {
        view.select().visit(|_, _| ()).unwrap()
    }

    #[test]
    fn finds_a_list_until_its_table_changes() {
        let (store, kept) = (store(), KeptRows::default());
        let before = store.read();
        let view = before.table_named("rows").unwrap();
        kept.keep(list(5), read(&view), &Markup::from_text("<li>1</li>"));
        assert_eq!(kept.find(&list(5), &view), Some(Markup::from_text("<li>1</li>")));
        assert_eq!(kept.find(&list(6), &view), None);
        let insert = |n| {
            let added =
                store.change(|change| change.insert_values("rows", &[Value::Integer(n)]).map(drop));
            added.wait().unwrap();
        };
        insert(1);
        let after = store.read();
        assert_eq!(kept.find(&list(5), &after.table_named("rows").unwrap()), None);
        // The earlier moment is as it was.
        assert!(kept.find(&list(5), &view).is_some());
    }

    #[test]
    fn keeps_a_bounded_number_of_lists_and_bytes() {
        let (store, kept) = (store(), KeptRows::default());
        let snapshot = store.read();
        let view = snapshot.table_named("rows").unwrap();
        let read = read(&view);
        let small = Markup::from_text("x");
        for limit in 0..200 {
            kept.keep(list(limit), read.clone(), &small);
            // The first one is in use, so it stays.
            assert!(kept.find(&list(0), &view).is_some(), "{limit}");
        }
        assert_eq!(kept.0.borrow().lists.len(), MAX_LISTS);
        assert!(kept.find(&list(100), &view).is_none());
        let large = Markup::from_text(&"x".repeat(MAX_LIST));
        for limit in 0..20 {
            kept.keep(list(limit), read.clone(), &large);
            kept.keep(list(limit), read.clone(), &large);
        }
        let own = kept.0.borrow();
        assert_eq!((own.lists.len(), own.bytes), (MAX_BYTES / MAX_LIST, MAX_BYTES));
        drop(own);
        kept.keep(list(1000), read, &Markup::from_text(&"x".repeat(MAX_LIST + 1)));
        assert!(kept.find(&list(1000), &view).is_none());
    }
}
