//! Asset folders: URLs with a hash, what caches may keep, and names that are checked at the start.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bine::prelude::*;
use bine::test::{Method, Site};
use bine::{AssetFolder, bundled_files};

use crate::harness::{Folder, PATIENCE};

static STATIC: AssetFolder = AssetFolder::new("/static", "tests/bine/assets");
/// A page names a file that this folder lacks.
static INCOMPLETE: AssetFolder = AssetFolder::new("/incomplete", "tests/bine/assets");

static NO_FOLDER: AssetFolder = AssetFolder::new("/static", "tests/bine/lost");
static NO_PATH: AssetFolder = AssetFolder::new("static/", "tests/bine/assets");
/// The same files, as part of the program.
static BUNDLED: AssetFolder = AssetFolder::bundled("/static", bundled_files!("assets"));

const IMMUTABLE: Option<&str> = Some("public, max-age=31536000, immutable");
const REVALIDATED: Option<&str> = Some("no-cache");

#[page("/")]
async fn home() -> impl Page {
    html! {
        <link rel="stylesheet" href={asset!(STATIC, "css/app.css")}>
        <img src={asset!(STATIC, "a boat.svg")} alt="A boat">
    }
}

#[page("/incomplete")]
async fn incomplete() -> impl Page {
    html!(<img src={asset!(INCOMPLETE, "lost.png")} alt="Nothing">)
}

fn app() -> App {
    App::new().development(false).asset_folder(&STATIC).page(home)
}

/// The reason why a program does not start.
fn refusal(app: App) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(Site::new(app)))).expect_err("it starts");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// A handle for a folder of a test. The leak is bounded: few tests call this.
fn folder_at(path: &Folder) -> &'static AssetFolder {
    let path = path.path().to_str().expect("a path of ASCII").to_owned();
    Box::leak(Box::new(AssetFolder::new("/files", path.leak())))
}

#[test]
fn hashed_urls_are_cached_forever() {
    let site = Site::new(app());
    let urls =
        [asset!(STATIC, "css/app.css"), asset!(STATIC, "a boat.svg"), STATIC.url("a boat.svg")];
    let page = site.get("/");
    for url in &urls {
        assert!(url.starts_with("/static/v-"), "{url}");
        assert!(page.text().contains(&format!("\"{url}\"")), "{url}: {}", page.text());
        let reply = site.get(url);
        assert_eq!((reply.status(), reply.header("Cache-Control")), (200, IMMUTABLE), "{url}");
    }
    assert!(urls[1].ends_with("/a%20boat.svg"), "{}", urls[1]);
    let sheet = site.get(&urls[0]);
    assert_eq!(sheet.header("Content-Type"), Some("text/css; charset=utf-8"));
    // The reference of the style sheet leads to the same version of the image.
    assert!(sheet.text().contains("url(\"../a%20boat.svg\")"));
    let referenced = urls[0].replace("css/app.css", "a%20boat.svg");
    assert_eq!(referenced, urls[1]);
}

#[test]
fn other_paths_of_an_asset_are_revalidated() {
    let site = Site::new(app());
    let hashed = asset!(STATIC, "css/app.css");
    let start = "/static/v-".len();
    let outdated = format!("{}0123456789abcdef{}", &hashed[..start], &hashed[start + 16..]);
    for path in [outdated.as_str(), "/static/css/app.css"] {
        let reply = site.get(path);
        assert_eq!((reply.status(), reply.header("Cache-Control")), (200, REVALIDATED), "{path}");
        let tag = reply.header("ETag").expect("a validator").to_owned();
        let again = site.request(Method::Get, path).header("If-None-Match", tag).send();
        assert_eq!(again.status(), 304);
    }
    let version = &hashed[..start + 16];
    for path in ["/lost.css", "/css", "/css/", "/", "/../harness/mod.rs", "/%2e%2e/harness/mod.rs"]
    {
        for prefix in ["/static", version] {
            assert_eq!(site.get(&format!("{prefix}{path}")).status(), 404, "{prefix}{path}");
        }
    }
}

#[test]
fn files_of_the_program_have_the_urls_of_their_folder() {
    let folder = Site::new(app());
    let program =
        Site::new(App::new().development(false).asset_folder(&BUNDLED).page(home_without));
    for name in ["css/app.css", "a boat.svg"] {
        let url = BUNDLED.url(name);
        let (one, other) = (folder.get(&url), program.get(&url));
        assert_eq!(one.text(), other.text());
        for field in ["Content-Type", "Cache-Control"] {
            assert_eq!(one.header(field), other.header(field), "{field} of {url}");
        }
        assert_eq!(other.header("Cache-Control"), IMMUTABLE);
    }
    assert_eq!(BUNDLED.url("a boat.svg"), STATIC.url("a boat.svg"));
    let plain = program.get("/static/css/app.css");
    assert_eq!(plain.header("Cache-Control"), REVALIDATED);
    let tag = plain.header("ETag").expect("a validator").to_owned();
    let again = program.request(Method::Get, "/static/css/app.css").header("If-None-Match", tag);
    assert_eq!(again.send().status(), 304);
    assert_eq!(program.get("/static/lost.css").status(), 404);
}

#[test]
fn development_shows_changed_files() {
    let folder = Folder::new();
    folder.write("a.txt", b"before");
    let handle = folder_at(&folder);
    let site = Site::new(App::new().development(true).asset_folder(handle).page(home_without));
    let url = handle.url("a.txt");
    assert!(url.starts_with("/files/v-"), "{url}");
    let reply = site.get(&url);
    assert_eq!((reply.text(), reply.header("Cache-Control")), ("before", REVALIDATED));
    folder.write("a.txt", b"after the change");
    let end = Instant::now() + PATIENCE;
    while site.get(&url).text() != "after the change" {
        assert!(Instant::now() < end, "timed out");
    }
}

#[page("/")]
async fn home_without() -> impl Page {
    html!(<h1>Home</h1>)
}

#[test]
fn hash_depends_on_names_and_contents_alone() {
    let url_with = |files: &[(&str, &str)]| {
        let folder = Folder::new();
        for (name, content) in files {
            folder.write(name, content.as_bytes());
        }
        let handle = folder_at(&folder);
        drop(Site::new(App::new().asset_folder(handle).page(home_without)));
        handle.url(files[0].0)
    };
    let first = url_with(&[("a", "1"), ("b/c", "2")]);
    assert_eq!(first, url_with(&[("a", "1"), ("b/c", "2")]));
    for other in [
        &[("a", "1"), ("b/c", "3")][..],
        &[("a", "1"), ("b/d", "2")],
        &[("a", "1"), ("b/c", "2"), ("d", "")],
        &[("a", "1b/c2")],
    ] {
        assert_ne!(first, url_with(other), "{other:?}");
    }
}

#[test]
fn names_missing_files_and_folders_at_the_start() {
    let error = refusal(App::new().asset_folder(&INCOMPLETE).page(incomplete));
    let place = "crates/bine/tests/bine/assets.rs:";
    assert!(error.contains(place), "{error}");
    let end = "names the asset \"lost.png\", and the folder tests/bine/assets has no such file; add the file or correct the name";
    assert!(error.ends_with(end), "{error}");

    let error = refusal(App::new().asset_folder(&NO_FOLDER).page(home_without));
    let end = "the assets in the folder tests/bine/lost cannot be read: cannot serve files from tests/bine/lost: No such file or directory (os error 2)";
    assert!(error.ends_with(end), "{error}");

    let error = refusal(App::new().asset_folder(&NO_PATH).page(home_without));
    assert!(error.contains("needs a path that begins with a slash"), "{error}");
}
