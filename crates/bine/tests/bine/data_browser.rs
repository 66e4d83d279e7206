//! The data browser at `/_bine/data`, through HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use bine::prelude::*;
use bine::store::Enum;
use bine::test::{Client, Method, Site};

use crate::app::{options, program};
use crate::harness::{PATIENCE, Peer, Program};

#[derive(Table)]
#[table(name = "shelf_author")]
struct Author {
    id: Id<Author>,
    #[table(unique, length = 1..=20)]
    name: Text,
    #[table(private)]
    secret: Text,
}

#[derive(Clone, Copy, PartialEq, Debug, Enum)]
enum Mood {
    Cheerful,
    Grave,
}

#[derive(Clone, PartialEq, Debug, Table)]
#[table(name = "shelf_book")]
struct Book {
    id: Id<Book>,
    #[table(on_remove = "cascade")]
    author: Id<Author>,
    #[table(length = 1..=40)]
    title: Text,
    #[table(index, range = 0..=2100)]
    year: i32,
    #[table(length = 0..=2000)]
    note: Option<Text>,
    mood: Mood,
}

#[derive(Table)]
#[table(name = "shelf_loan")]
struct Loan {
    id: Id<Loan>,
    book: Id<Book>,
}

const ROOT: &str = "/_bine/data";

#[page("/")]
async fn home() -> impl Page {
    html!(<p>Hello</p>)
}

fn app() -> App {
    App::new().page(home).table::<Author>().table::<Book>().table::<Loan>()
}

/// Starts a program, and returns its store too.
fn serve(app: App) -> (Site, Store) {
    let opened = Arc::new(OnceLock::new());
    let open = Arc::clone(&opened);
    let site = Site::new(app.on_store_open(move |store| {
        let _only_once = open.set(store.clone());
        Ok(())
    }));
    let store: &Store = opened.get().unwrap();
    (site, store.clone())
}

fn author(store: &Store, name: &str) -> Id<Author> {
    let (name, secret) = (name.into(), "open sesame".into());
    store.insert(Author { id: Id::unassigned(), name, secret }).wait().unwrap()
}

fn book(store: &Store, author: Id<Author>, title: &str, year: i32) -> Id<Book> {
    let (title, mood) = (title.into(), Mood::Grave);
    let book = Book { id: Id::unassigned(), author, title, year, note: None, mood };
    store.insert(book).wait().unwrap()
}

fn row_of(table: &str, id: impl std::fmt::Display) -> String {
    format!("{ROOT}/tables/{table}/rows/{id}")
}

#[test]
fn lists_tables_with_their_columns() {
    let (site, store) = serve(app());
    author(&store, "Ann");
    let mut tab = site.visit(ROOT);
    tab.expect("tbody tr", "shelf_author");
    tab.expect("dl", "text; length 1 to 20; unique");
    tab.expect("dl", "row of shelf_author; index");
    tab.expect("dl", "one of cheerful, grave");
    tab.expect("p.note", "Sessions, users, rights and the audit log");
    tab.expect(".banner", "open to clients on this machine without a login");
}

#[test]
fn shows_rows_with_links_to_the_rows_they_name() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann <b>");
    let novel = book(&store, ann, "A novel", 1999);
    let mut tab = site.visit(&format!("{ROOT}/tables/shelf_book"));
    tab.expect("tbody td", "A novel");
    tab.click("tbody td > a");
    assert_eq!(tab.url(), row_of("shelf_author", ann));
    tab.expect("h1", "Ann <b>");
    tab.expect("ul > li", "shelf_book.author: 1 row");
    tab.click("main ul a");
    tab.expect("p.note", "All rows with this value, by its index.");
    tab.click("tbody th a");
    assert_eq!(tab.url(), row_of("shelf_book", novel));
}

#[test]
fn never_sends_private_values() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    let table = format!("{ROOT}/tables/shelf_author");
    let pages = [
        ROOT.to_owned(),
        table.clone(),
        format!("{table}?column=&match=contains&value=sesame"),
        format!("{table}/csv"),
        row_of("shelf_author", ann),
        format!("{}/remove", row_of("shelf_author", ann)),
    ];
    for page in pages {
        let reply = site.get(&page);
        assert_eq!(reply.status(), 200, "{page}");
        assert!(!reply.text().contains("open sesame"), "{page}: {}", reply.text());
    }
    for query in ["order=secret", "column=secret&match=contains&value=o"] {
        assert_eq!(site.get(&format!("{table}?{query}")).status(), 400, "{query}");
    }
    assert!(site.get(&table).text().contains("hidden"));
    assert!(site.get(&row_of("shelf_author", ann)).text().contains("private: hidden"));
}

#[test]
fn changes_a_row_with_an_entry_in_the_audit_log() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    let novel = book(&store, ann, "A novel", 1999);
    let mut tab = site.visit(&row_of("shelf_book", novel));
    tab.submit(
        "form.row",
        [("value.title", "Two novels"), ("value.mood", "cheerful"), ("value.note", "a\n<b>")],
    );
    tab.expect(".saved", "Saved.");
    let row = store.read().get(novel).unwrap();
    assert_eq!((&*row.title, row.mood, row.year), ("Two novels", Mood::Cheerful, 1999));
    assert_eq!(row.note.as_deref(), Some("a\n<b>"));
    tab.visit(&format!("{ROOT}/audit"));
    tab.expect_count("tbody tr", 1);
    tab.expect("tbody td", "anonymous");
    tab.expect("tbody td", "row update");
    tab.expect("tbody td", &*format!("shelf_book {novel}"));
    let changes =
        r#"title: "A novel" -> "Two novels"; note: null -> "a\n<b>"; mood: grave -> cheerful"#;
    tab.expect(".detail", changes);
    // A form without a change writes nothing.
    tab.visit(&row_of("shelf_book", novel));
    tab.submit("form.row", [("value.title", "Two novels")]);
    tab.visit(&format!("{ROOT}/audit?actor=anonymous"));
    tab.expect_count("tbody tr", 1);
    tab.visit(&format!("{ROOT}/audit?object=shelf_book"));
    tab.expect("p.note", "No entries.");
}

#[test]
fn reports_invalid_values_beside_their_fields() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    author(&store, "Bob");
    let novel = book(&store, ann, "A novel", 1999);
    let mut tab = site.visit(&row_of("shelf_book", novel));
    tab.submit("form.row", [("value.title", ""), ("value.year", "3000")]);
    tab.expect(".problem", "must have from 1 to 40 letters, not 0");
    tab.expect(".problem", "must be from 0 to 2100, not 3000");
    tab.submit("form.row", [("value.title", "B"), ("value.year", "soon")]);
    tab.expect(".problem", "must be a whole number");
    let missing = "0193f9a0-4c5e-7b3a-9c1d-5e6f70819203";
    tab.submit("form.row", [("value.year", "7"), ("value.author", missing)]);
    tab.expect(".field .problem", "there is no row 0193f9a0");
    tab.visit(&row_of("shelf_author", ann));
    tab.submit("form.row", [("value.name", "Bob")]);
    tab.expect(".problem", "is taken already");
    let row = store.read().get(novel).unwrap();
    assert_eq!((&*row.title, row.year), ("A novel", 1999));
    assert!(site.get(&format!("{ROOT}/audit")).text().contains("No entries."));
}

#[test]
fn shows_both_versions_of_a_row_that_has_changed_meanwhile() {
    let (site, store) = serve(app());
    let novel = book(&store, author(&store, "Ann"), "A novel", 1999);
    let mut tab = site.visit(&row_of("shelf_book", novel));
    store.update(novel, |book| book.title = "Changed meanwhile".into()).wait().unwrap();
    tab.submit("form.row", [("value.title", "Mine")]);
    tab.expect(".problem", "The row has changed since this form was loaded");
    tab.expect(".field .problem", "Stored now: Changed meanwhile");
    assert_eq!(&*store.read().get(novel).unwrap().title, "Changed meanwhile");
    tab.submit("form.row", [("value.year", "1999")]);
    tab.expect(".saved", "Saved.");
    assert_eq!(&*store.read().get(novel).unwrap().title, "Mine");

    let form = "version=0000000000000000&value.title=Blind";
    let path = row_of("shelf_book", novel);
    assert_eq!(post(&site, &path, form).status(), 409);
    assert_eq!(post(&site, &format!("{path}/remove"), "version=0").status(), 409);
    assert!(store.read().get(novel).is_some());
}

fn post(site: &Site, path: &str, form: &str) -> bine::test::Reply {
    let request = site.request(Method::Post, path);
    request.header("Content-Type", "application/x-www-form-urlencoded").body(form).send()
}

#[test]
fn inserts_rows_by_the_rules_of_their_table() {
    let (site, store) = serve(app());
    let mut tab = site.visit(&format!("{ROOT}/tables/shelf_author/new"));
    tab.submit("form.row", [("value.name", "Ann"), ("value.secret", "hush")]);
    tab.expect(".saved", "Saved.");
    let all: Vec<Author> = store.read().all().collect();
    let [ann] = &all[..] else { panic!("{} rows", all.len()) };
    assert_eq!((&*ann.name, &*ann.secret), ("Ann", "hush"));
    let audit = site.get(&format!("{ROOT}/audit"));
    assert!(audit.text().contains("row insert") && !audit.text().contains("hush"));
    tab.visit(&format!("{ROOT}/tables/shelf_book/new"));
    tab.submit("form.row", [("value.author", &*ann.id.to_string())]);
    tab.expect(".problem", "must");
    assert_eq!(store.read().count::<Book>(), 0);
}

#[test]
fn removes_rows_as_their_references_say() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    let novel = book(&store, ann, "A novel", 1999);
    let loan = store.insert(Loan { id: Id::unassigned(), book: novel }).wait().unwrap();
    let mut tab = site.visit(&row_of("shelf_author", ann));
    tab.click("a.danger");
    tab.expect("li", "1 row of shelf_book refer to it by author: they are removed too.");
    tab.click("button.danger");
    tab.expect(".problem", "rows of `shelf_loan` name this row still");
    assert!(store.read().get(ann).is_some());
    store.remove(loan).wait().unwrap();
    tab.click("button.danger");
    assert_eq!(tab.url(), format!("{ROOT}/tables/shelf_author"));
    assert_eq!((store.read().count::<Author>(), store.read().count::<Book>()), (0, 0));
    tab.visit(&format!("{ROOT}/audit"));
    tab.expect(".detail", r#"name: "Ann"; also removed: 1 of shelf_book"#);
}

#[test]
fn pages_through_all_rows_in_each_order() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    let titles: Vec<String> = (0..120).map(|number| format!("Book {number:03}")).collect();
    for (number, title) in (0..).zip(&titles) {
        // Equal years, so that the order depends on the ids too.
        book(&store, ann, title, 1900 + number / 40);
    }
    let read = |query: &str| {
        let mut tab = site.visit(&format!("{ROOT}/tables/shelf_book{query}"));
        let mut pages = vec![tab.texts("tbody td:nth-child(3)")];
        while tab.texts(".pages a").iter().any(|label| label.contains("Next")) {
            tab.click(".pages a:last-child");
            pages.push(tab.texts("tbody td:nth-child(3)"));
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [50, 50, 20], "{query}");
        tab.click(".pages a:first-child");
        assert_eq!(tab.texts("tbody td:nth-child(3)"), pages[1], "{query}");
        pages.concat()
    };
    let newest_first: Vec<String> = titles.iter().rev().cloned().collect();
    assert_eq!(read(""), newest_first);
    assert_eq!(read("?order=&direction=asc"), titles);
    assert_eq!(read("?order=year"), titles);
    assert_eq!(read("?order=year&direction=desc"), newest_first);
    // All books of one author, by the index of the reference.
    assert_eq!(read(&format!("?column=author&match=is&value={ann}")), titles);
}

#[test]
fn searches_by_index_and_by_text() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    book(&store, ann, "Hops & malt", 1999);
    let other = book(&store, ann, "Barley", 2001);
    let mut tab = site.visit(&format!("{ROOT}/tables/shelf_book"));
    tab.submit("form.search", [("value", "HOPS &")]);
    tab.expect_count("tbody tr", 1);
    tab.expect(".note", "Searched all 2 rows.");
    tab.submit("form.search", [("column", "year"), ("match", "is"), ("value", "2001")]);
    tab.expect("td", "Barley");
    tab.expect_count("tbody tr", 1);
    tab.submit("form.search", [("column", "year"), ("match", "is"), ("value", "soon")]);
    tab.expect(".note", "The column holds a whole number");
    tab.submit("form.search", [("column", "id"), ("match", "is"), ("value", &*other.to_string())]);
    tab.expect("td", "Barley");
    tab.submit("form.search", [("column", "title"), ("match", "starts"), ("value", "malt")]);
    tab.expect(".note", "No rows.");
}

#[test]
fn streams_csv_with_guards_against_formulas() {
    let (site, store) = serve(app());
    let ann = author(&store, "Ann");
    let one = book(&store, ann, "=1+1", 5);
    store.update(one, |book| book.note = Some("a \"b\",\nc".into())).wait().unwrap();
    let two = book(&store, ann, "Plain", 6);
    let reply = site.get(&format!("{ROOT}/tables/shelf_book/csv"));
    let expected = format!(
        "id,author,title,year,note,mood\r\n{one},{ann},'=1+1,5,\"a \"\"b\"\",\nc\",grave\r\n{two},{ann},Plain,6,,grave\r\n"
    );
    assert_eq!(reply.text(), expected);
    let disposition = reply.header("Content-Disposition");
    assert_eq!(disposition, Some("attachment; filename=\"shelf_book.csv\""));
    // More than one piece.
    for _ in 0..2000 {
        book(&store, ann, "0123456789012345678901234567890123456789", 7);
    }
    let reply = site.get(&format!("{ROOT}/tables/shelf_book/csv"));
    assert_eq!(reply.text().lines().count(), 2004);
    assert!(reply.text().ends_with("grave\r\n") && reply.bytes().len() > 200_000);
}

#[test]
fn tables_of_the_server_are_read_only() {
    let (site, store) = serve(app());
    let novel = book(&store, author(&store, "Ann"), "A novel", 1999);
    site.visit(&row_of("shelf_book", novel)).submit("form.row", [("value.title", "B")]);
    let mut tab = site.visit(&format!("{ROOT}/tables/bine_audit"));
    tab.expect(".note", "its rows can be read and not changed here");
    tab.click("tbody th a");
    tab.expect(".note", "it can be read and not changed here");
    tab.expect("dd", "private: hidden");
    assert_eq!(tab.count("form.row"), 0);
    for path in [tab.url().to_owned(), format!("{}/remove", tab.url())] {
        assert_eq!(post(&site, &path, "version=0").status(), 403, "{path}");
    }
    assert_eq!(post(&site, &format!("{ROOT}/tables/bine_audit/new"), "").status(), 403);
}

#[test]
fn rejects_what_other_sites_and_invalid_addresses_send() {
    let (site, store) = serve(app());
    let novel = book(&store, author(&store, "Ann"), "A novel", 1999);
    let path = row_of("shelf_book", novel);
    for (name, value) in [("Sec-Fetch-Site", "cross-site"), ("Origin", "http://evil.example")] {
        let request = site.request(Method::Post, &path).header(name, value);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        assert_eq!(request.body("value.title=Evil").send().status(), 403, "{name}");
    }
    for unknown in ["tables/nothing", "tables/shelf_book/rows/7", "tables/nothing/csv", "nothing"] {
        assert_eq!(site.get(&format!("{ROOT}/{unknown}")).status(), 404, "{unknown}");
    }
    let missing = row_of("shelf_book", "0193f9a0-4c5e-7b3a-9c1d-5e6f70819203");
    assert_eq!(site.get(&missing).status(), 404);
    for query in ["order=nothing", "order=title", "after=xyz", "match=like", "column=x&match=is"] {
        let path = format!("{ROOT}/tables/shelf_book?{query}");
        assert_eq!(site.get(&path).status(), 400, "{query}");
    }
    assert_eq!(post(&site, &path, "value.nothing=1").status(), 400);
    assert_eq!(post(&site, ROOT, "").status(), 405);
    assert_eq!(&*store.read().get(novel).unwrap().title, "A novel");
}

#[test]
fn escapes_all_content_and_forbids_scripts() {
    let (site, store) = serve(app());
    let ann = author(&store, "<script>1</script>");
    for path in [format!("{ROOT}/tables/shelf_author"), row_of("shelf_author", ann)] {
        let reply = site.get(&path);
        assert!(!reply.text().contains("<script") && reply.text().contains("&lt;script"), "{path}");
        let policy = reply.header("Content-Security-Policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("Cache-Control"), Some("no-store"));
        assert_eq!(reply.header("X-Frame-Options"), Some("DENY"));
    }
}

#[test]
fn exists_for_nobody_outside_of_development() {
    let (site, _store) = serve(app().development(false));
    let nothing = site.get("/nothing");
    for path in ["", "/audit", "/style.css", "/tables/shelf_book", "/tables/shelf_book/csv"] {
        let reply = site.get(&format!("{ROOT}{path}"));
        assert_eq!((reply.status(), reply.text()), (404, nothing.text()), "{path}");
    }
    assert_eq!(post(&site, &format!("{ROOT}/tables/shelf_book/new"), "").status(), 404);
}

#[test]
fn exists_only_in_programs_with_tables() {
    let site = Site::new(App::new().page(home));
    assert_eq!(site.get(ROOT).status(), 404);
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_data_browser_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    app().run_with("Usage: data_browser", options.lines())
}

#[test]
fn key_removes_the_data_browser() {
    for (word, status) in [("on", 200), ("off", 404)] {
        let options = ["--data", "memory", "--data-browser", word];
        let server =
            Program::start(&mut program("data_browser::serve_data_browser_program", &options));
        let mut peer = server.connect();
        peer.send(format!("GET {ROOT} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(peer.reply().status(), status, "{word}");
    }
}

/// A program with many long rows, and workers for all requests at once. Ordinary test runs skip it.
#[test]
fn serve_full_shelf() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let fill = |store: &Store| {
        let author = author(store, "Ann");
        let added = store.change(|change| {
            for year in 0..ROWS {
                let note = Some("x".repeat(2000).into());
                let (title, mood) = ("A book".into(), Mood::Grave);
                change.insert(Book { id: Id::unassigned(), author, title, year, note, mood })?;
            }
            Ok::<_, Error>(())
        });
        added.wait()
    };
    app().on_store_open(fill).run_with("Usage: shelf", options.lines())
}

/// Rows whose CSV is longer than the buffers of a connection.
const ROWS: i32 = 2000;

fn full_shelf() -> Program {
    let options = ["--data", "memory", "--workers", "32", "--development", "on"];
    Program::start(&mut program("data_browser::serve_full_shelf", &options))
}

fn send_get(peer: &mut Peer, target: &str) {
    peer.send(format!("GET {ROOT}/tables/shelf_book{target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

#[test]
fn fifth_concurrent_download_is_rejected() {
    let program = full_shelf();
    let download = || {
        let mut peer = program.connect();
        send_get(&mut peer, "/csv");
        peer
    };
    // Nobody reads the contents of the first four, which therefore continue.
    let mut running: Vec<Peer> = (0..4).map(|_| download()).collect();
    for peer in &mut running {
        drop(peer.await_text("HTTP/1.1 200 OK"));
    }
    let reply = download().reply();
    assert_eq!((reply.status(), reply.header("Retry-After")), (503, Some("1")));
    assert!(reply.text().contains("Other downloads are running; try again."), "{}", reply.text());
    drop(running.pop());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut peer = download();
        if peer.await_text("\r\n").contains("200 OK") {
            break;
        }
        assert!(Instant::now() < deadline, "a download that ended still counts");
    }
}

#[test]
fn third_concurrent_search_is_rejected() {
    let program = full_shelf();
    let deadline = Instant::now() + PATIENCE;
    let (address, has_rejected) = (program.address(), AtomicBool::new(false));
    let target = format!("{ROOT}/tables/shelf_book?column=&match=contains&value=absent");
    let search = || {
        while !has_rejected.load(Ordering::Acquire) {
            let reply = Client::at(address).get(&target);
            if reply.status() == 503 {
                assert_eq!(reply.header("Retry-After"), Some("1"));
                assert!(reply.text().contains("Other searches are running"), "{}", reply.text());
                has_rejected.store(true, Ordering::Release);
            } else {
                assert_eq!(reply.status(), 200);
            }
            assert!(Instant::now() < deadline, "all searches run at the same time");
        }
    };
    // Many clients search until one is rejected.
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(search);
        }
    });
    assert_eq!(Client::at(address).get(&target).status(), 200);
}

#[test]
fn lists_the_routes_of_the_data_browser() {
    let routes = |options: &[&str]| {
        let options = [&["--data", "memory", "--routes"], options].concat();
        Program::run(&mut program("data_browser::serve_full_shelf", &options)).output
    };
    let output = routes(&[]);
    for (methods, path) in [
        ("GET", "/_bine/data "),
        ("GET", "/_bine/data/audit "),
        ("GET", "/_bine/data/tables/{table}/csv "),
        ("GET|POST", "/_bine/data/tables/{table}/rows/{row} "),
    ] {
        let line = output.lines().find(|line| line.contains(path));
        let line = line.unwrap_or_else(|| panic!("{path} is not in {output}"));
        assert!(line.starts_with(methods), "{line}");
        assert!(line.contains("administrators; in development this machine too"), "{line}");
    }
    assert!(!routes(&["--data-browser", "off"]).contains("/_bine/data"));
}
