//! Sites with applications in TSX, as their authors use them: the commands, the mistakes and their
//! messages, and changes while the server runs.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use crate::bine;
use crate::harness::{Folder, PATIENCE, Program, Reply};

const PAGE: &str = "import { page } from \"bine\";\nexport default page(() => <p>fine</p>);\n";

fn page(text: &str) -> String {
    PAGE.replace("fine", text)
}

/// The program in a folder, with a free port.
fn bine_in(folder: &Folder, site: &str, arguments: &[&str]) -> Command {
    let mut command = bine(arguments);
    command.current_dir(folder.join(site)).env("BINE_LISTEN", "127.0.0.1:0");
    // Without a run folder, the control socket is in the data folder.
    command.env_remove("XDG_RUNTIME_DIR");
    command
}

fn serve(folder: &Folder, development: &str) -> Program {
    Program::start(&mut bine_in(folder, "", &["serve", "site", "--development", development]))
}

/// Asks as a browser does.
fn browse(program: &Program, path: &str) -> Reply {
    program.connect().request("GET", path, "Accept: text/html\r\n", "")
}

/// Requests a page until it has this text: a server looks for changed files a few times a second.
#[track_caller]
fn await_text(program: &Program, path: &str, text: &str) -> Reply {
    let began = Instant::now();
    loop {
        let reply = browse(program, path);
        if unescaped(&reply).contains(text) {
            return reply;
        }
        assert!(began.elapsed() < PATIENCE, "no {text:?} in {}", reply.text());
    }
}

fn unescaped(reply: &Reply) -> String {
    let text = reply.text().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

#[test]
fn serves_the_application_in_the_current_folder() {
    let folder = Folder::new();
    folder.write("site/index.tsx", PAGE.as_bytes());
    folder.write("site/sub/page.tsx", page("sub").as_bytes());
    let program = Program::start(&mut bine_in(&folder, "site", &["--development", "off"]));
    assert!(browse(&program, "/").text().contains("<p>fine</p>"));
    assert!(browse(&program, "/sub/page").text().contains("<p>sub</p>"));
    assert!(folder.join("site/.bine/data").is_dir());
    // The commands of the same folder, and of the folder above, reach this server.
    for (place, arguments) in [
        ("site", &["status"][..]),
        ("", &["status", "site"]),
        ("site", &["reload"]),
        ("", &["reload", "site"]),
    ] {
        let ended = Program::run(&mut bine_in(&folder, place, arguments));
        assert_eq!(ended.code, Some(0), "{arguments:?} in {place:?}: {}", ended.errors);
    }
    for (place, arguments) in [("site", &["routes"][..]), ("", &["routes", "site"])] {
        let ended = Program::run(&mut bine_in(&folder, place, arguments));
        assert!(ended.output.contains("sub/page.tsx"), "{}{}", ended.output, ended.errors);
        assert!(!ended.output.contains("demo"), "{}", ended.output);
    }
    let ended = Program::run(&mut bine_in(&folder, "site", &["stop"]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn serves_the_demo_where_no_application_is() {
    let folder = Folder::new();
    folder.write("site/index.html", b"a file");
    folder.write("site/sub/index.tsx", PAGE.as_bytes());
    let ended = Program::run(&mut bine_in(&folder, "site", &["--routes"]));
    assert!(ended.output.contains("demo"), "{}{}", ended.output, ended.errors);
}

#[test]
fn names_the_mistake_in_settings_at_the_start() {
    for (settings, message) in [
        ("titel = \"x\"", "site/app.toml: line 1: unknown key `titel`; did you mean `title`?"),
        ("title = ", "site/app.toml: line 1: "),
        ("title = 1", "`title` must be a text"),
        ("\nmemory_mb = 0", "site/app.toml: line 2: `memory_mb`"),
        ("access = \"everyone\"", "`access` must be \"anyone\", \"users\" or \"group:NAME\""),
    ] {
        let folder = Folder::new();
        folder.write("site/index.tsx", PAGE.as_bytes());
        folder.write("site/app.toml", settings.as_bytes());
        let ended = Program::run(&mut bine_in(&folder, "", &["serve", "site"]));
        assert_eq!(ended.code, Some(1), "{settings}: {}", ended.errors);
        assert!(ended.errors.contains(message), "{settings}: {}", ended.errors);
    }
}

#[test]
fn keeps_serving_while_settings_are_wrong_and_says_so_once() {
    let folder = Folder::new();
    folder.write("site/index.tsx", PAGE.as_bytes());
    let program = serve(&folder, "on");
    await_text(&program, "/", "<p>fine</p>");
    folder.write("site/app.toml", b"titel = \"x\"");
    // Once the settings are right again, the wrong ones have been looked at or skipped.
    folder.write("site/about.tsx", page("about").as_bytes());
    for _ in 0..20 {
        assert!(browse(&program, "/").text().contains("<p>fine</p>"));
    }
    folder.write("site/app.toml", b"title = \"right\"");
    await_text(&program, "/", "<title>right</title>");
    await_text(&program, "/about", "<p>about</p>");
    let log = program.stop().errors;
    assert!(log.matches("did you mean `title`?").count() <= 1, "{log}");
}

/// Each mistake, with its place: in the page and the log of a server in development, and in the log
/// alone of a server in production, under the number that the visitor reads.
#[test]
fn shows_mistakes_where_they_are() {
    for (file, text, path, place, excerpt) in [
        (
            "index.tsx",
            "export default 1 +;\n",
            "/",
            "index.tsx:1:19: ",
            "  1 | export default 1 +;",
        ),
        ("index.tsx", &*page("<b>x</i>"), "/", "index.tsx:2:3", "  2 | export default page(() => "),
        (
            "index.tsx",
            &*page("{[].x.y}"),
            "/",
            "index.tsx:2:27",
            "  2 | export default page(() => <p>{[].x.y}</p>);",
        ),
        ("index.tsx", "import { a } from \"./b.ts\";\n", "/", "index.tsx:1:19: b.ts", ""),
        (
            "about/[id].tsx",
            &*page("{raw(1)}"),
            "/about/7",
            "about/[id].tsx:2:",
            "  2 | export default page(() => <p>{raw(1)}</p>);",
        ),
    ] {
        for development in ["on", "off"] {
            let folder = Folder::new();
            folder.write("site/index.tsx", PAGE.as_bytes());
            folder.write("site/fine/index.tsx", PAGE.as_bytes());
            folder.write("site/fine/app.toml", b"");
            folder.write(&format!("site/{file}"), text.as_bytes());
            let program = serve(&folder, development);
            let reply = browse(&program, path);
            assert_eq!(reply.status(), 500, "{file}: {}", reply.text());
            assert!(browse(&program, "/fine/").text().contains("<p>fine</p>"));
            let log = program.stop().errors;
            assert!(log.contains(place) && log.contains(excerpt), "{file}: {log}");
            let shown = unescaped(&reply);
            if development == "on" {
                assert!(shown.contains(place) && shown.contains(excerpt), "{file}: {shown}");
                continue;
            }
            assert!(!shown.contains(place), "{shown}");
            let (_, rest) = shown.split_once("Its number in the log is ").unwrap();
            let number = &rest[..8];
            assert!(log.contains(&format!("answered 500 ({number}): ")), "{number}: {log}");
        }
    }
}

#[test]
fn serves_a_site_with_links_to_itself() {
    let folder = Folder::new();
    folder.write("site/app/index.tsx", PAGE.as_bytes());
    symlink("..", folder.join("site/app/up")).unwrap();
    symlink("../site", folder.join("site/loop")).unwrap();
    symlink("circle", folder.join("site/circle")).unwrap();
    symlink("missing.tsx", folder.join("site/app/dangling.tsx")).unwrap();
    let program = serve(&folder, "on");
    assert!(browse(&program, "/app/").text().contains("<p>fine</p>"));
    for path in ["/app/up/app/", "/loop/app/", "/circle"] {
        assert_eq!(browse(&program, path).status(), 404, "{path}");
    }
    program.stop();
}

#[test]
fn checks_who_may_use_an_application() {
    let folder = Folder::new();
    for (app, access) in [("users", "users"), ("staff", "group:staff"), ("all", "anyone")] {
        folder.write(&format!("site/{app}/index.tsx"), PAGE.as_bytes());
        folder.write(&format!("site/{app}/public/style.css"), b"p {}");
        let settings = format!("access = \"{access}\"");
        folder.write(&format!("site/{app}/app.toml"), settings.as_bytes());
    }
    let program = serve(&folder, "off");
    for (path, status) in [
        ("/users/", 401),
        ("/staff/", 401),
        ("/all/", 200),
        ("/users/style.css", 200),
        ("/users/app.toml", 401),
        ("/all/app.toml", 404),
    ] {
        assert_eq!(browse(&program, path).status(), status, "{path}");
    }
    program.stop();
}

#[test]
fn loads_an_application_at_the_start_if_it_says_so() {
    let folder = Folder::new();
    for app in ["eager", "lazy"] {
        folder.write(&format!("site/{app}/index.tsx"), b"export default 1 +;");
    }
    folder.write("site/eager/app.toml", b"start = true");
    let log = serve(&folder, "off").stop().errors;
    assert!(log.contains("eager cannot be loaded"), "{log}");
    assert!(!log.contains("lazy"), "{log}");
}

#[test]
fn names_an_application_that_is_new_and_serves_it_after_a_restart() {
    let folder = Folder::new();
    folder.write("site/old/index.tsx", PAGE.as_bytes());
    let program = serve(&folder, "off");
    folder.write("site/new/index.tsx", page("new").as_bytes());
    assert_eq!(browse(&program, "/new/").status(), 404);
    for _ in 0..2 {
        let ended = Program::run(&mut bine_in(&folder, "", &["reload", "site"]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
    }
    let log = program.stop().errors;
    let told = "new is a new application: restart the server to serve it";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    assert!(browse(&serve(&folder, "off"), "/new/").text().contains("<p>new</p>"));
}

/// In production, a reload with a mistake keeps the version that works.
#[test]
fn reloads_changed_files_and_keeps_the_last_version_that_compiles() {
    let folder = Folder::new();
    folder.write("site/index.tsx", PAGE.as_bytes());
    let program = serve(&folder, "off");
    let reload = || {
        let ended = Program::run(&mut bine_in(&folder, "", &["reload", "site"]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
    };
    assert!(browse(&program, "/").text().contains("<p>fine</p>"));
    folder.write("site/index.tsx", page("second").as_bytes());
    assert!(browse(&program, "/").text().contains("<p>fine</p>"));
    reload();
    assert!(browse(&program, "/").text().contains("<p>second</p>"));
    folder.write("site/index.tsx", b"export default 1 +;");
    reload();
    assert!(browse(&program, "/").text().contains("<p>second</p>"));
    folder.write("site/index.tsx", page("third").as_bytes());
    reload();
    assert!(browse(&program, "/").text().contains("<p>third</p>"));
    let log = program.stop().errors;
    assert!(log.contains("index.tsx:1:19: Unexpected token"), "{log}");
    assert!(log.contains("site: the last version is served"), "{log}");
}
