//! Services and tables that a program uses without having them: the start names a service in a
//! form of its pages, and the first request that uses a table names the table.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bine::prelude::*;
use bine::test::Site;
use bine::{ErrorInfo, Flow, Html, PageContent};

use crate::app::{options, program};
use crate::harness::{KINDS, Program};

#[derive(Table)]
struct Note {
    id: Id<Note>,
    text: Text,
}

#[derive(Table)]
struct Forgotten {
    id: Id<Forgotten>,
    #[table(index)]
    text: Text,
}

#[service]
fn write(call: &mut Call, text: Text) -> Result<(), Error> {
    call.insert(Note { id: Id::unassigned(), text })?;
    Ok(())
}

#[service(safe)]
fn ask() -> impl Page {
    html!(<form method="post" action={write}><button>Write</button></form>)
}

mod services {
    use bine::prelude::*;

    #[service]
    pub(super) fn add(one: i64, other: i64) -> i64 {
        one + other
    }

    #[service]
    pub(super) fn imported() {}
}

use services::imported;

#[page("/single")]
async fn single() -> impl Page {
    html! {
        <h1>A note</h1>
        <form method="post" action={write}><input name="text" aria-label="Text"></form>
    }
}

#[page("/nested")]
fn nested(of: Query<Option<u8>>) -> Result<impl Page, Error> {
    if *of == Some(0) {
        return Err(Error::not_found("There is no form."));
    }
    Ok(html! {
        {if of.is_some() {
            {for number in 0..3 {
                <form method="post" action={single_address()}>
                    <button formaction={services::add} name="one" value={number}>Add</button>
                </form>
            }}
        }}
    })
}

#[page("/import")]
async fn import() -> impl Page {
    html!(<form method="post" action={imported}><button>Send</button></form>)
}

fn layout(content: PageContent<'_>) -> impl Page {
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>A title</title></head>
            <body>{content}<form method="post" action={self::services::add}><button>Add</button></form></body>
        </html>
    }
}

fn failure(_: &ErrorInfo<'_>) -> impl Page {
    html!(<form method="post" action={crate::unregistered::write}><button>Add</button></form>)
}

/// Values of forms that are not services, with names that services may have.
#[page("/others")]
async fn others() -> impl Page {
    const PLACE: &str = "/constant";
    let (address, on) = ("/variable", Some("/optional"));
    html! {
        <form method="post" action={address}><button formaction={on}>Send</button></form>
        <form method="post" action={PLACE}><button formaction={single_address}>Send</button></form>
        <form method="post" action={places::SEARCH}><button formaction={places::search}>Send</button></form>
    }
}

/// Variables with the name of a service of the module.
#[page("/variables")]
async fn variables(write: Query<Option<Text>>) -> impl Page {
    let addresses = ["/one", "/two"];
    html! {
        {if let Some(write) = &*write { <form method="post" action={write}></form> }}
        {for write in addresses { <form method="post" action={write}></form> }}
    }
}

fn layout_with_variable(content: PageContent<'_>) -> impl Page {
    let write = "/three";
    html! {
        <!DOCTYPE html>
        <html lang="en">
            <head><title>A title</title></head>
            <body>{content}<form method="post" action={write}><button>Add</button></form></body>
        </html>
    }
}

mod places {
    pub(super) const SEARCH: &str = "/search";

    pub(super) fn search() -> String {
        SEARCH.to_owned()
    }
}

fn single_address() -> &'static str {
    "/single"
}

/// The page calls a function whose form the start does not see.
#[page("/called")]
async fn called() -> impl Page {
    html!(<main>{write_form()}</main>)
}

fn write_form() -> impl Html<Flow> {
    html!(<form method="post" action={write}><input name="text" aria-label="Text"></form>)
}

/// Returns the reason why a program does not start.
#[track_caller]
fn refusal(app: App) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(Site::new(app)))) else {
        panic!("the program starts");
    };
    panic.downcast_ref::<String>().expect("a message").clone()
}

/// Returns the line of this file with this text.
fn line_of(text: &str) -> usize {
    let found = include_str!("unregistered.rs").lines().position(|line| line.contains(text));
    found.expect("the line is in this file") + 1
}

#[track_caller]
fn check_refusal(app: App, function: &str, line: &str, service: &str, fix: &str) {
    let (file, line) = (file!(), line_of(line));
    let expected = format!(
        "the program cannot start: bine::unregistered::{function} has a form that cannot be sent: {file}:{line} names the service bine::unregistered::{service}, which the program does not have; add `.service({fix})` to the app"
    );
    assert_eq!(refusal(app), expected);
}

#[test]
fn refuses_pages_with_forms_for_missing_services() {
    let app = || App::new().table::<Note>();
    let written =
        "<form method=\"post\" action={write}><input name=\"text\" aria-label=\"Text\"></form>";
    check_refusal(app().page(single), "single", written, "write", "write");
    let added = "formaction={services::add}";
    let app_with_two = app().page(single).service(write).page(nested);
    check_refusal(app_with_two, "nested", added, "services::add", "services::add");
    check_refusal(
        app().page(import),
        "import",
        "action={imported}",
        "services::imported",
        "imported",
    );
    let asked = "fn ask() -> impl Page {";
    assert_eq!(line_of(asked) + 1, line_of("action={write}><button>Write"));
    check_refusal(app().service(ask), "ask", "<button>Write", "write", "write");
    check_refusal(
        App::new().page(others).layout(layout),
        "layout",
        "action={self::services::add}",
        "services::add",
        "self::services::add",
    );
    check_refusal(
        App::new().page(others).error_page(failure),
        "failure",
        "action={crate::unregistered::write}",
        "write",
        "crate::unregistered::write",
    );
}

#[test]
fn starts_with_forms_for_registered_services_and_other_addresses() {
    let app = App::new().table::<Note>().page(single).page(nested).page(import).page(others);
    let app = app.service(write).service(services::add).service(imported).service(ask);
    let site = Site::new(app.layout(layout).error_page(failure));
    assert_eq!(site.get("/others").status(), 200);
    // Pages and services of other programs of this binary do not matter.
    drop(Site::new(App::new().page(others)));
    drop(Site::new(App::new().table::<Note>().service(write).page(single)));
}

/// The start found a service of the name in the module, and refused a form whose address was a
/// variable. `html!` cannot see variables, but `#[page]` can.
#[test]
fn starts_with_variables_that_have_the_name_of_a_missing_service() {
    let site = Site::new(App::new().page(variables).layout(layout_with_variable));
    let page = site.get("/variables?write=/four").text().to_owned();
    for address in ["/one", "/two", "/three", "/four"] {
        assert!(page.contains(&format!("action=\"{address}\"")), "{address}\n{page}");
    }
}

#[page("/read")]
async fn read(store: Store) -> impl Page {
    html!(<p>{texts(&store)}</p>)
}

#[page("/read/plain")]
fn read_plain(store: Store) -> impl Page {
    html!(<p>{texts(&store)}</p>)
}

fn texts(store: &Store) -> String {
    let texts: Vec<Text> = store.read().all::<Forgotten>().map(|row| row.text).collect();
    texts.join(", ")
}

#[page("/newest")]
async fn newest(store: Store) -> impl Page {
    html!(<ul>{for row in store.read().newest::<Forgotten>(9) { <li>{row.text}</li> }}</ul>)
}

#[service(safe)]
fn is_known(call: &mut Call, text: Text) -> bool {
    call.one(super::unregistered::Forgotten::BY_TEXT, &*text).is_some()
}

#[service]
fn insert(call: &mut Call, text: Text) -> Result<(), Error> {
    call.insert(Forgotten { id: Id::unassigned(), text })?;
    Ok(())
}

#[test]
fn refuses_pages_and_services_that_read_missing_tables() {
    let check = |app: App, function: &str, line: &str, fix: &str| {
        let (file, line) = (file!(), line_of(line));
        let expected = format!(
            "the program cannot start: bine::unregistered::{function} reads at {file}:{line} the table of bine::unregistered::Forgotten, which the program does not have; add `.table::<{fix}>()` to the app"
        );
        assert_eq!(refusal(app.table::<Note>()), expected);
    };
    check(App::new().page(newest), "newest", ".newest::<Forgotten>(9)", "Forgotten");
    let path = "super::unregistered::Forgotten";
    check(App::new().service(is_known), "is_known", "Forgotten::BY_TEXT, &*text", path);
    let app = App::new().table::<Forgotten>().page(newest).service(is_known);
    assert_eq!(Site::new(app).get("/newest").status(), 200);
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_forgetful_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().table::<Note>().page(read).page(read_plain).service(insert).page(called);
    app.run_with("Usage: forgetful", options.lines())
}

#[test]
fn answers_500_and_logs_the_fix_for_a_missing_table() {
    let fix = "the table of bine::unregistered::Forgotten: add `.table::<Forgotten>()`";
    for scheduler in KINDS {
        for (method, target) in [("GET", "/read"), ("GET", "/read/plain"), ("POST", "/bine/insert")]
        {
            println!("{method} {target} on {scheduler}:");
            let options = ["--data", "memory", "--scheduler", scheduler];
            let program = "unregistered::serve_forgetful_program";
            let program = Program::start(&mut crate::app::program(program, &options));
            let form = "Content-Type: application/x-www-form-urlencoded\r\n";
            let body = if method == "POST" { "text=a" } else { "" };
            let reply = program.connect().request(method, target, form, body);
            assert_eq!(reply.status(), 500, "{reply:?}");
            let errors = program.stop().errors;
            assert!(errors.contains(fix), "{errors}");
        }
    }
}

/// A form in a function that a page calls is known only when the page is rendered.
#[test]
fn logs_missing_services_of_called_functions_once() {
    let options = ["--data", "memory"];
    let running = Program::start(&mut program("unregistered::serve_forgetful_program", &options));
    for _ in 0..2 {
        assert_eq!(running.connect().request("GET", "/called", "", "").status(), 200);
    }
    let errors = running.stop().errors;
    let told = "a page names the service bine::unregistered::write, which the program does not have, so /bine/write is not found; add `.service(write)` to the app";
    assert_eq!(errors.matches(told).count(), 1, "{errors}");
}
