//! Tables defined by `#[derive(Table)]`.

use bine::prelude::{App, Page, Text, html, page};
use bine::store::{Enum, Error, Id, Options, PageLinks, Store, Table, Time, Turn};
use bine::test::Site;

#[derive(Clone, PartialEq, Debug, Table)]
#[table(name = "people")]
struct User {
    id: Id<User>,
    #[table(unique, length = 1..=20)]
    name: Text,
    #[table(range = 0..=150)]
    age: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Debug, Enum)]
enum State {
    Open,
    ShutForEver,
}

#[derive(Clone, PartialEq, Debug, Table)]
#[table(index(forum, posted))]
pub(crate) struct BoardMessage {
    id: Id<BoardMessage>,
    forum: String,
    author: Id<User>,
    parent: Option<Id<BoardMessage>>,
    posted: Time,
    #[table(index, default = "open")]
    state: State,
    #[table(private)]
    score: f32,
}

fn store() -> Store {
    Store::in_memory(Options::new().table::<User>().table::<BoardMessage>()).unwrap()
}

fn message(author: Id<User>, forum: &str, posted: i64) -> BoardMessage {
    BoardMessage {
        id: Id::unassigned(),
        forum: forum.to_owned(),
        author,
        parent: None,
        posted: Time(posted),
        state: State::Open,
        score: 0.5,
    }
}

#[test]
fn derives_table_with_named_indexes() {
    assert_eq!((User::NAME, BoardMessage::NAME), ("people", "board_message"));
    let store = store();
    let (anna, first) = store
        .change(|change| {
            let anna =
                change.insert(User { id: Id::unassigned(), name: "anna".into(), age: Some(9) })?;
            let first = change.insert(message(anna, "garden", 2))?;
            change.insert(message(anna, "garden", 1))?;
            change.insert(message(anna, "kitchen", 3))?;
            Ok::<_, Error>((anna, first))
        })
        .wait()
        .unwrap();
    let now = store.read();
    assert_eq!(now.one(User::BY_NAME, "anna").unwrap().id, anna);
    let posted =
        |found: Vec<BoardMessage>| found.iter().map(|one| one.posted.0).collect::<Vec<_>>();
    assert_eq!(posted(now.find(BoardMessage::BY_FORUM_POSTED, ("garden",)).collect()), [1, 2]);
    let late = ("garden", Time(2))..("garden", Time(9));
    assert_eq!(posted(now.range(BoardMessage::BY_FORUM_POSTED, late).collect()), [2]);
    store
        .change(|change| {
            change.update(first, |row: &mut BoardMessage| row.state = State::ShutForEver)
        })
        .wait()
        .unwrap();
    let shut = store.read().find(BoardMessage::BY_STATE, State::ShutForEver).collect();
    assert_eq!(posted(shut), [2]);
    let first = store.read().get(first).unwrap();
    assert_eq!(
        first,
        BoardMessage { id: first.id, state: State::ShutForEver, ..message(anna, "garden", 2) }
    );
}

#[test]
fn names_the_place_of_each_index_in_the_schema() {
    let schema = BoardMessage::schema();
    let columns_at = |place: usize| -> Vec<&str> {
        let columns = &schema.indexes[place].columns;
        columns.iter().map(|&column| &*schema.columns[column].name).collect()
    };
    assert_eq!(columns_at(BoardMessage::BY_FORUM_POSTED.place()), ["forum", "posted"]);
    assert_eq!(columns_at(BoardMessage::BY_STATE.place()), ["state"]);
}

#[test]
fn enforces_references_between_rows() {
    let store = store();
    let anna = store
        .change(|change| {
            change.insert(User { id: Id::unassigned(), name: "anna".into(), age: None })
        })
        .wait()
        .unwrap();
    let first = store.change(|change| change.insert(message(anna, "garden", 1))).wait().unwrap();
    let outcome = store.change(|change| change.remove(anna)).wait();
    assert_eq!(outcome.unwrap_err().to_string(), "rows of `board_message` name this row still");
    let nobody =
        store.change(|change| change.insert(message(Id::unassigned(), "garden", 1))).wait();
    assert!(nobody.unwrap_err().to_string().starts_with("there is no row 0000"));
    let old = store
        .change(|change| {
            change.insert(User { id: Id::unassigned(), name: "ben".into(), age: Some(200) })
        })
        .wait();
    assert_eq!(old.unwrap_err().to_string(), "`age` must be from 0 to 150, not 200");
    store
        .change(|change| {
            change.update(first, |row: &mut BoardMessage| row.parent = Some(first))?;
            // A row may reference itself and can still be removed.
            change.remove(first)?;
            change.remove(anna)
        })
        .wait()
        .unwrap();
    assert_eq!(store.read().count::<User>(), 0);
}

const MOST: u32 = 9;

#[derive(Table)]
struct Defaults {
    id: Id<Self>,
    #[table(default = "a", length = 1..=MOST)]
    text: Option<String>,
    #[table(default = -7, range = -9..=9)]
    small: i8,
    #[table(default = MOST)]
    whole: u32,
    #[table(default = 5_000_000_000)]
    long: u64,
    #[table(default = 1)]
    fraction: f64,
    #[table(default = 0.5)]
    short: Option<f32>,
    #[table(default = true)]
    truth: bool,
    #[table(default = Time(3))]
    moment: Time,
    #[table(default = "shut_for_ever")]
    state: State,
}

#[test]
fn converts_defaults_to_column_values() {
    let columns = Defaults::schema().columns;
    let defaults = columns.into_iter().map(|column| column.default.unwrap());
    let told: Vec<String> = defaults.map(|default| format!("{default:?}")).collect();
    let expected = [
        "Text(\"a\")",
        "Integer(-7)",
        "Integer(9)",
        "Integer(5000000000)",
        "Integer(1)",
        "Float(0.5)",
        "Bool(true)",
        "Time(Time(3))",
        "Text(\"shut_for_ever\")",
    ];
    assert_eq!(told, expected);
    drop(Store::in_memory(Options::new().table::<Defaults>()).unwrap());
}

#[derive(Clone, PartialEq, Debug, Table)]
#[table(index(forum, stars))]
struct Entry {
    id: Id<Entry>,
    forum: Text,
    stars: u8,
    #[table(on_remove = "cascade")]
    parent: Option<Id<Entry>>,
    #[table(on_remove = "set_none")]
    author: Option<Id<User>>,
}

fn entry(stars: u8) -> Entry {
    Entry { id: Id::unassigned(), forum: "a&b".into(), stars, parent: None, author: None }
}

#[test]
fn derives_columns_for_queries() {
    let store = Store::in_memory(Options::new().table::<User>().table::<Entry>()).unwrap();
    let anna =
        store.insert(User { id: Id::unassigned(), name: "anna".into(), age: None }).wait().unwrap();
    for stars in [3, 1, 2] {
        store.insert(Entry { author: Some(anna), ..entry(stars) }).wait().unwrap();
    }
    let now = store.read();
    let best = now.select::<Entry>().equals(Entry::COLUMN_FORUM, "a&b");
    let best = best.order_by(Entry::COLUMN_STARS.descending()).limit(2);
    let explained = best.explain().to_string();
    assert_eq!(explained, "`entry` by the index of `forum`, `stars`: 2 examined, 2 returned");
    let pairs = best.with(|entry| entry.author).rows();
    let names: Vec<_> = pairs
        .iter()
        .map(|(entry, author)| (entry.stars, &*author.as_ref().unwrap().name))
        .collect();
    assert_eq!(names, [(3, "anna"), (2, "anna")]);
    let by_forum = now.select::<Entry>().group_by(Entry::COLUMN_FORUM);
    assert_eq!(by_forum.sum(Entry::COLUMN_STARS), [("a&b".into(), 6)]);
}

#[test]
fn derives_rules_for_removal() {
    let store = Store::in_memory(Options::new().table::<User>().table::<Entry>()).unwrap();
    let anna =
        store.insert(User { id: Id::unassigned(), name: "anna".into(), age: None }).wait().unwrap();
    let first = store.insert(Entry { author: Some(anna), ..entry(1) }).wait().unwrap();
    store.insert(Entry { parent: Some(first), ..entry(2) }).wait().unwrap();
    store.remove(anna).wait().unwrap();
    assert_eq!(store.read().get(first).unwrap().author, None);
    store.remove(first).wait().unwrap();
    assert_eq!(store.read().count::<Entry>(), 0);
}

#[page("/entries")]
async fn entries(store: Store, turn: Turn) -> Result<impl Page, bine::Error> {
    let page = store.read().select::<Entry>().order_by(Entry::COLUMN_STARS).page(&turn, 2)?;
    let links = PageLinks::new(&page).keep("forum", "a&b c");
    Ok(html!(<p>{for entry in page.rows { {entry.stars}" " }}</p> {links.nav("Back", "On")}))
}

#[test]
fn links_lead_to_each_page_of_rows_and_back() {
    let insert = |store: &Store| {
        for stars in [5, 3, 1, 4, 2] {
            store.insert(entry(stars)).wait()?;
        }
        Ok(())
    };
    let app = App::new().table::<User>().table::<Entry>().page(entries).on_store_open(insert);
    let site = Site::new(app);
    let mut tab = site.visit("/entries");
    tab.expect("p", "1 2");
    tab.click("a[rel=next]");
    tab.expect("p", "3 4");
    assert!(tab.url().starts_with("/entries?after="), "{}", tab.url());
    assert!(tab.url().ends_with("&forum=a%26b%20c"), "{}", tab.url());
    tab.click("a[rel=next]");
    tab.expect("p", "5");
    tab.expect_count("a[rel=next]", 0);
    tab.click("a[rel=prev]");
    tab.expect("p", "3 4");
    let address = tab.url().to_owned();
    tab.click("a[rel=prev]");
    tab.expect("p", "1 2");
    tab.expect_count("a[rel=prev]", 0);
    assert_eq!(site.get(&address).status(), 200);
    assert_eq!(site.get("/entries?after=").status(), 200);
    for bad in ["x", "%ff", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let address = format!("/entries?after={bad}");
        assert_eq!(site.get(&address).status(), 400, "{bad}");
    }
}
