//! Errors: where they are, in development and in production.

use std::time::{Duration, Instant};

use bine::test::Reply;

use crate::folder::Folder;

/// The page of an error as text.
fn shown(reply: &Reply) -> String {
    let text = reply.text();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

fn error_of(files: &[(&str, &str)], path: &str) -> String {
    let folder = Folder::with(files);
    let reply =
        folder.site().request(bine::test::Method::Get, path).header("Accept", "text/html").send();
    assert_eq!(reply.status(), 500, "{}", reply.text());
    shown(&reply)
}

#[test]
fn shows_the_place_of_an_exception() {
    let page = error_of(
        &[(
            "board/index.tsx",
            "import { page } from \"bine\";\nconst broken = (x: any) => x.y.z;\nexport default page(() => <p>{broken({})}</p>);\n",
        )],
        "/board/",
    );
    assert!(
        page.contains("board/index.tsx:2:28: TypeError: cannot read property 'z' of undefined"),
        "{page}"
    );
    assert!(page.contains("2 | const broken = (x: any) => x.y.z;"), "{page}");
    assert!(page.contains("at broken (board/index.tsx:2:"), "{page}");
}

#[test]
fn shows_all_errors_of_the_compiler() {
    let page = error_of(
        &[(
            "index.tsx",
            "import { page } from \"bine\";\nlet counter = 0;\nexport default page(() => { counter++; return <buton>{counter}</buton>; });\nenum E { A }\n",
        )],
        "/",
    );
    assert!(
        page.contains("index.tsx:3:48: HTML has no element `<buton>`; did you mean `<button>`?"),
        "{page}"
    );
    assert!(page.contains("index.tsx:4:1:"), "{page}");
}

#[test]
fn rejects_module_variables_that_change() {
    let page = error_of(
        &[(
            "index.tsx",
            "import { page } from \"bine\";\nlet counter = 0;\nexport default page(() => { counter++; return <p>{counter}</p>; });\n",
        )],
        "/",
    );
    assert!(page.contains("index.tsx:2:5: `counter` is changed at line 3"), "{page}");
    assert!(page.contains("keep the value in a `table`"), "{page}");
}

#[test]
fn rejects_a_page_file_that_exports_nothing() {
    let page = error_of(&[("index.tsx", SAY), ("about.tsx", "const a = 1;\n")], "/");
    assert!(page.contains("about.tsx:1:1: the file exports nothing"), "{page}");
    assert!(page.contains("write `export default page("), "{page}");
}

const SAY: &str = "import { page } from \"bine\";\nexport default page(() => <p>Hello</p>);\n";

#[test]
fn names_a_missing_import_and_two_services_of_one_name() {
    let page =
        error_of(&[("index.tsx", "import { a } from \"./nothing.ts\";\nexport default a;\n")], "/");
    assert!(page.contains("index.tsx:1:19: nothing.ts: there is no such file"), "{page}");
    let service = "import { service } from \"bine\";\nexport const post = service(() => 1);\n";
    let page = error_of(&[("index.tsx", service), ("other.tsx", service)], "/");
    assert!(page.contains("another service `post`"), "{page}");
}

#[test]
fn shows_errors_of_tables_while_loading() {
    let page = error_of(
        &[(
            "index.tsx",
            "import { page, table, text } from \"bine\";\nconst a = table(\"a\", { b: text().max(-1) });\nexport default page(() => <p>{a.count()}</p>);\n",
        )],
        "/",
    );
    assert!(page.contains("index.tsx:2:"), "{page}");
}

#[test]
fn tells_values_that_are_no_page() {
    let page = error_of(
        &[("index.tsx", "import { page } from \"bine\";\nexport default page(() => \"text\");\n")],
        "/",
    );
    assert!(
        page.contains(
            "a page returns markup, a tree, `redirect(..)`, `notFound()` or `error(..)`, not a string"
        ),
        "{page}"
    );
}

#[test]
fn hides_causes_in_production() {
    let folder = Folder::with(&[(
        "index.tsx",
        "import { page } from \"bine\";\nexport default page(() => { throw new Error(\"secret\"); });\n",
    )]);
    let site = bine::test::Site::new(folder.app());
    let reply = site.get("/");
    assert_eq!(reply.status(), 500);
    assert!(!reply.text().contains("<h1>secret"), "{}", reply.text());
}

#[test]
fn loads_again_once_the_mistake_is_corrected() {
    let folder = Folder::with(&[("index.tsx", "export default 1 +;")]);
    let site = folder.site();
    assert_eq!(site.get("/").status(), 500);
    folder.write(
        "index.tsx",
        "import { page } from \"bine\";\nexport default page(() => <p>right</p>);\n",
    );
    let begun = Instant::now();
    let reply = loop {
        let reply = site.get("/");
        if reply.status() == 200 {
            break reply;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the correction is not loaded");
        std::thread::yield_now();
    };
    assert!(reply.text().contains("<p>right</p>"));
}

#[test]
fn renders_errors_in_the_page_of_the_application() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            "import { error, page } from \"bine\";\nexport default page(() => error(410, \"Sold out\"));\n",
        ),
        (
            "_error.tsx",
            "export default ({ status, message }) => <main><h1>{status}</h1><p>{message}</p></main>;\n",
        ),
    ]);
    let site = folder.site();
    let ask = |path: &str, accept: &str| {
        site.request(bine::test::Method::Get, path).header("Accept", accept).send()
    };
    let gone = ask("/", "text/html");
    assert_eq!((gone.status(), gone.header("vary")), (410, Some("Accept")));
    assert!(gone.text().contains("<h1>410</h1><p>Sold out</p>"), "{}", gone.text());
    let missing = ask("/nothing", "text/html");
    assert_eq!(missing.status(), 404);
    assert!(missing.text().contains("<title>Not Found</title>"), "{}", missing.text());
    assert!(missing.text().contains("<h1>404</h1>"), "{}", missing.text());
    // Programs get what they get from a page in Rust.
    assert_eq!(ask("/", "*/*").text(), "Sold out\n");
    let problem: serde_json::Value = ask("/", "application/json").json();
    assert_eq!(problem["detail"], "Sold out");
}

/// The page for errors of an application that has exceeded a limit runs in its next instance.
#[test]
fn renders_exceeded_limits_in_the_page_of_the_application() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            "import { page } from \"bine\";\nexport default page(() => { for (;;); });\n",
        ),
        (
            "_error.tsx",
            "export default ({ title, message }) => <main><h1>{title}</h1><p>{message}</p></main>;\n",
        ),
        ("app.toml", "timeout_ms = 50"),
    ]);
    let site = bine::test::Site::new(folder.app().development(false));
    let request = site.request(bine::test::Method::Get, "/").header("Accept", "text/html");
    let reply = request.send();
    assert_eq!(reply.status(), 503);
    let expected =
        "<h1>Service Unavailable</h1><p>Something went wrong here. It has been noted.</p>";
    assert!(reply.text().contains(expected), "{}", reply.text());
}

/// In production, the visitor reads the number under which the log has the error.
#[test]
fn shows_the_number_of_an_error_in_production() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            "import { page } from \"bine\";\nexport default page(() => { throw new Error(\"secret\"); });\n",
        ),
        (
            "own/index.tsx",
            "import { page } from \"bine\";\nexport default page(() => { throw new Error(\"secret\"); });\n",
        ),
        ("own/app.toml", ""),
        ("own/_error.tsx", "export default ({ message }) => <main>{message}</main>;\n"),
    ]);
    let site = bine::test::Site::new(folder.app().development(false));
    for path in ["/", "/own/"] {
        let reply =
            site.request(bine::test::Method::Get, path).header("Accept", "text/html").send();
        assert_eq!(reply.status(), 500);
        let (_, number) = reply.text().split_once("Its number in the log is ").unwrap();
        assert!(number.split('.').next().is_some_and(|number| number.len() == 8), "{number}");
        assert!(!reply.text().contains("secret"), "{}", reply.text());
    }
}

/// The rule of a pattern would hold for a channel that matches it, too.
#[test]
fn rejects_channels_with_names_in_common() {
    let app = |one: &str, other: &str| {
        format!(
            "import {{ channel, page }} from \"bine\";\nexport const one = channel(\"{one}\", {{ follow: \"anyone\" }});\nexport const other = channel(\"{other}\", {{ follow: \"nobody\" }});\nexport default page(() => <p>Hello</p>);\n"
        )
    };
    for (one, other) in
        [("rooms/{room}", "rooms/audit"), ("logs/*", "logs/private/a"), ("{a}/b", "a/{b}")]
    {
        let page = error_of(&[("board/index.tsx", &app(one, other))], "/board/");
        assert!(page.contains("have names in common"), "{one}, {other}: {page}");
    }
    for (one, other) in
        [("rooms/{room}", "rooms"), ("rooms/{room}", "rooms/a/b"), ("a/{b}", "b/{b}")]
    {
        let folder = Folder::with(&[("board/index.tsx", &app(one, other))]);
        assert_eq!(folder.site().get("/board/").status(), 200, "{one}, {other}");
    }
}
