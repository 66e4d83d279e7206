//! Forms: files that visitors send, and messages at fields.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use bine::App;
use bine::prelude::*;
use bine::test::{Method, Reply, Site};
use serde_json::{Value, json};

use crate::folder::Folder;

const ALBUM: &str = r#"import { change, integer, invalid, page, service, table, text, Upload } from "bine";
const pictures = table("pictures", { title: text().min(1).max(20), size: integer() });

export const add = service((ctx, { title, picture }: { title: string; picture: Upload }) => {
  if (!picture.type.startsWith("image/")) return invalid({ picture: "must be a picture" });
  pictures.insert({ title, size: picture.size });
  const bytes = picture.bytes();
  return {
    name: picture.name, type: picture.type, size: picture.size, is: picture instanceof Upload,
    first: bytes[0], last: bytes[bytes.length - 1], length: bytes.length,
  };
});
export const read = service((ctx, { note }: { note?: Upload }) => note ? note.text() : "nothing");
export const several = service((ctx, { files }: { files: Upload[] }) => files.map((file) => file.name));
export const keep = service(async (ctx, { path, picture }: { path: string; picture: Upload }) => {
  await picture.save(path);
  return picture.size;
});
export const keepAtOnce = service((ctx, { picture }: { picture: Upload }) => {
  picture.save("a.png").catch(() => {});
});
export const keepInTransaction = service(async (ctx, { picture }: { picture: Upload }) => {
  const saved = await change(() => picture.save("b.png").then(String, String) && 1);
  return saved;
});
export const preview = service((ctx, { title }: { title: string }) => <h1>{title} of {pictures.count()}</h1>);
export const previewed = service(async () => preview({ title: "a" }));
export const plain = service((ctx, { title }: { title: string }) => title.length);
export const sign = service((ctx, { name, age }: { name: string; age: string }) => {
  const errors = { name: name ? undefined : "must not be empty", age: age === "7" ? "is too young" : undefined };
  if (errors.name || errors.age) throw invalid(errors);
});
export const wrong = service((ctx, { how }: { how: string }) => {
  if (how === "none") return invalid({});
  if (how === "number") return invalid({ a: 1 });
  if (how === "text") return invalid("a");
  if (how === "made") return new Upload();
  if (how === "path") return Upload.prototype.save.call({}, "a.png");
});

export default page(() => (
  <main>
    <form action={add} enctype="multipart/form-data">
      <input name="title" /><input type="file" name="picture" /><button>Add</button>
    </form>
    <form action={sign}><input name="name" /><input name="age" /><button>Sign</button></form>
    <p>{pictures.count()} pictures</p>
  </main>
));
"#;

fn album() -> (Folder, Site) {
    let folder = Folder::with(&[("album/index.tsx", ALBUM), ("album/public/note.txt", "here")]);
    let site = folder.site();
    (folder, site)
}

/// A part of a form: its name, the name of its file if it is one, and the content.
type Part<'p> = (&'p str, Option<&'p str>, &'p [u8]);

const BOUNDARY: &str = "----parts";

fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let file = file.map(|file| {
            let is_picture = Path::new(file).extension().is_some_and(|own| own == "png");
            let kind = if is_picture { "image/png" } else { "text/plain" };
            format!("; filename=\"{file}\"\r\nContent-Type: {kind}")
        });
        let file = file.unwrap_or_default();
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

fn send_for(site: &Site, accept: &str, path: &str, parts: &[Part<'_>]) -> Reply {
    let request = site.request(Method::Post, path);
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let from = format!("http://{}/album/", site.address());
    let request = request.header("Content-Type", kind).header("Accept", accept);
    request.header("Referer", from).body(form(parts)).send()
}

fn send(site: &Site, path: &str, parts: &[Part<'_>]) -> Reply {
    send_for(site, "application/json", path, parts)
}

#[test]
fn gives_a_service_the_file_of_a_form() {
    let (_folder, site) = album();
    let reply = send(
        &site,
        "/album/add",
        &[("title", None, b"Hops"), ("picture", Some("C:\\pictures\\hops.png"), &[7, 0, 255])],
    );
    let expected = json!({ "name": "hops.png", "type": "image/png", "size": 3, "is": true,
                           "first": 7, "last": 255, "length": 3 });
    assert_eq!(reply.json::<Value>(), expected, "{}", reply.text());
    assert!(site.get("/album/").text().contains("<p>1 pictures</p>"));
    let read = |parts: &[Part<'_>]| send(&site, "/album/read", parts).json::<String>();
    assert_eq!(read(&[("note", Some("a.txt"), "gr\u{fc}n".as_bytes())]), "gr\u{fc}n");
    // A browser sends this if no file was chosen.
    assert_eq!(read(&[("note", Some(""), b"")]), "nothing");
    assert_eq!(read(&[]), "nothing");
    let several = |parts: &[Part<'_>]| send(&site, "/album/several", parts).json::<Vec<String>>();
    assert_eq!(several(&[("files", Some("a"), b"1"), ("files", Some("b"), b"")]), ["a", "b"]);
    assert!(several(&[("files", Some(""), b"")]).is_empty());
}

#[test]
fn reads_long_files_up_to_the_limit_of_async_pages() {
    let (_folder, site) = album();
    let mut long = vec![1; 5 << 20];
    long[(5 << 20) - 1] = 9;
    let parts: &[Part<'_>] = &[("title", None, b"Long"), ("picture", Some("l.png"), &long)];
    let reply = send(&site, "/album/add", parts);
    let expected = json!({ "name": "l.png", "type": "image/png", "size": 5 << 20, "is": true,
                           "first": 1, "last": 9, "length": 5 << 20 });
    assert_eq!(reply.json::<Value>(), expected, "{}", reply.text());
    assert_eq!(status_of_length(&site, "/album/add", (16 << 20) + 1), "413");
    // A service without files has the limit of other services.
    assert_eq!(status_of_length(&site, "/album/plain", (1 << 20) + 1), "413");
    assert_eq!(status_of_length(&site, "/album/nothing", (1 << 20) + 1), "413");
}

/// The status of the response to the head of a request with a form of this length.
fn status_of_length(site: &Site, path: &str, length: usize) -> String {
    let mut socket = TcpStream::connect(site.address()).unwrap();
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n",
        site.address()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    socket.read_exact(&mut status).unwrap();
    String::from_utf8_lossy(&status[9..]).into_owned()
}

#[test]
fn rejects_values_in_place_of_files_and_files_in_place_of_values() {
    let (_folder, site) = album();
    let check = |reply: &Reply, name: &str, detail: &str| {
        assert_eq!(reply.status(), 400, "{}", reply.text());
        let problem: Value = reply.json();
        let errors = problem["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{problem}");
        assert_eq!((&errors[0]["name"], &errors[0]["detail"]), (&json!(name), &json!(detail)));
    };
    let title: Part<'_> = ("title", None, b"a");
    check(&send(&site, "/album/add", &[title]), "picture", "is missing from the form");
    let no_form = "is missing: send the form as `multipart/form-data`";
    check(&send(&site, "/album/add", &[title, ("picture", None, b"b")]), "picture", no_form);
    let json = site.post_json("/album/add", &json!({ "title": "a", "picture": "b" }));
    check(&json, "picture", no_form);
    let picture: Part<'_> = ("picture", Some("a.png"), b"1");
    let is_file = "is no file: the service takes another value";
    check(&send(&site, "/album/add", &[("title", Some("a"), b"a"), picture]), "title", is_file);
    let other = send(&site, "/album/add", &[title, picture, ("pictur", Some("a.png"), b"1")]);
    check(&other, "pictur", "is no argument of this service; did you mean `picture`?");
    // A service without files rejects files.
    let reply = send(&site, "/album/plain", &[("title", Some("a"), b"a")]);
    assert_eq!(reply.status(), 400);
    assert_eq!(site.get("/album/").text().matches("<p>0 pictures</p>").count(), 1);
}

#[test]
fn saves_files_where_the_application_serves_them() {
    let (folder, site) = album();
    let keep = |path: &str| {
        let parts: &[Part<'_>] =
            &[("path", None, path.as_bytes()), ("picture", Some("x.png"), b"picture")];
        send(&site, "/album/keep", parts)
    };
    assert_eq!(keep("pictures/1.png").json::<u64>(), 7);
    let served = site.get("/album/pictures/1.png");
    assert_eq!((served.status(), served.bytes()), (200, &b"picture"[..]));
    assert_eq!(served.header("content-type"), Some("image/png"));
    for (path, reason) in [
        ("pictures/1.png", "there is a file `pictures/1.png` already"),
        ("../index.tsx", "`save` takes a path in the folder `public`"),
        ("a.html", "it would run as a part of the site"),
        ("note.txt/a.png", "a part of this path is a file"),
    ] {
        let reply = keep(path);
        assert_eq!(reply.status(), 500, "{path}");
        assert!(reply.text().contains(reason), "{path}: {}", reply.text());
    }
    let picture: Part<'_> = ("picture", Some("x.png"), b"picture");
    assert_eq!(send(&site, "/album/keepAtOnce", &[picture]).status(), 204);
    assert_eq!(send(&site, "/album/keepInTransaction", &[picture]).json::<u64>(), 1);
    let public = folder.path().join("album/public");
    let mut names: Vec<_> =
        fs::read_dir(public).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["note.txt", "pictures"]);
}

#[test]
fn needs_a_folder_to_save_in() {
    let folder = Folder::with(&[("album/index.tsx", ALBUM)]);
    let site = folder.site();
    let parts: &[Part<'_>] = &[("path", None, b"1.png"), ("picture", Some("x.png"), b"1")];
    let reply = send(&site, "/album/keep", parts);
    assert!(reply.text().contains("no folder `public`: create it"), "{}", reply.text());
}

#[test]
fn returns_rejected_forms_with_values_and_messages() {
    let (_folder, site) = album();
    let html = "text/html";
    let reply = send_for(&site, html, "/album/sign", &[("name", None, b""), ("age", None, b"7")]);
    let page = reply.text();
    assert_eq!(reply.status(), 422, "{page}");
    assert!(page.contains("must not be empty") && page.contains("is too young"), "{page}");
    assert!(page.contains("value=\"7\""), "{page}");
    assert_eq!(page.matches("aria-invalid").count(), 2, "{page}");
    // A visitor chooses a file again, and keeps the texts.
    let reply = send_for(
        &site,
        html,
        "/album/add",
        &[("title", None, b"Hops & malt"), ("picture", Some("notes.txt"), b"no picture")],
    );
    let page = reply.text();
    assert_eq!(reply.status(), 422, "{page}");
    assert!(page.contains("must be a picture"), "{page}");
    assert!(page.contains("value=\"Hops &amp; malt\""), "{page}");
    // The limits of columns apply to forms with files.
    let reply = send_for(
        &site,
        html,
        "/album/add",
        &[("title", None, "x".repeat(21).as_bytes()), ("picture", Some("a.png"), b"1")],
    );
    assert_eq!(reply.status(), 422, "{}", reply.text());
    assert!(reply.text().contains("must have from 1 to 20"), "{}", reply.text());
    let problem = send(&site, "/album/sign", &[("name", None, b"Bo"), ("age", None, b"7")]);
    assert_eq!(
        problem.json::<Value>()["errors"],
        json!([{ "name": "age", "detail": "is too young" }])
    );
}

#[test]
fn names_the_fix_for_a_misused_word() {
    let (_folder, site) = album();
    for (how, reason) in [
        ("none", "there is no message"),
        ("number", "that of `a` is no string"),
        ("text", "`invalid` takes the messages by the names of the fields"),
        ("made", "an `Upload` comes with a form"),
        ("path", "TypeError"),
    ] {
        let reply = site.post_json("/album/wrong", &json!({ "how": how }));
        assert_eq!(reply.status(), 500, "{how}");
        assert!(reply.text().contains(reason), "{how}: {}", reply.text());
    }
}

#[service]
fn reserve(seats: u32) -> Result<u32, Error> {
    if seats > 9 {
        return Err(Error::invalid_argument("seats", "must be at most 9"));
    }
    Ok(seats)
}

const HALL: &str = r#"import { page, service } from "bine";
import { reserve } from "bine:services";
export const book = service((ctx, { seats }: { seats: number }) => reserve({ seats }));
export default page(() => <form action={book}><input name="seats" /><button>Book</button></form>);
"#;

#[test]
fn shows_messages_of_services_in_rust_at_their_fields() {
    let folder = Folder::with(&[("index.tsx", HALL)]);
    let site = Site::new(App::new().scripts(folder.path()).service(reserve));
    assert_eq!(site.post_json("/book", &json!({ "seats": 3 })).json::<u32>(), 3);
    let problem = site.post_json("/book", &json!({ "seats": 10 }));
    assert_eq!(problem.status(), 422);
    let expected = json!([{ "name": "seats", "detail": "must be at most 9" }]);
    assert_eq!(problem.json::<Value>()["errors"], expected);
}

#[test]
fn answers_a_form_with_the_page_that_a_service_returns() {
    let (_folder, site) = album();
    let reply = send_for(&site, "text/html", "/album/preview", &[("title", None, b"<b>")]);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(reply.text().starts_with("<!DOCTYPE html><html"), "{}", reply.text());
    assert!(reply.text().contains("<h1>&lt;b&gt; of 0</h1>"), "{}", reply.text());
    // Within the application it is an ordinary call.
    let reply = site.post_json("/album/previewed", &json!({}));
    assert!(reply.text().contains("<h1>a of 0</h1>"), "{}", reply.text());
}

/// The programs of the chapter of the guide, in their order.
fn guide() -> Vec<String> {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scripts-forms.md");
    let chapter = fs::read_to_string(chapter).unwrap();
    let programs = chapter.split("\n```tsx index.tsx\n").skip(1);
    programs.map(|rest| rest.split_once("\n```").unwrap().0.to_owned()).collect()
}

#[test]
fn runs_the_programs_of_the_guide() {
    let [album, cellar] = <[String; 2]>::try_from(guide()).unwrap();
    let folder = Folder::with(&[("index.tsx", &album), ("public/style.css", "")]);
    let site = folder.site();
    let title: Part<'_> = ("title", None, b"Hops");
    let added = send(&site, "/add", &[title, ("picture", Some("hops.png"), b"picture")]);
    assert_eq!(added.status(), 204, "{}", added.text());
    let page = site.get("/").text().to_owned();
    let (_, rest) = page.split_once("<img src=\"/").unwrap();
    let (file, _) = rest.split_once('"').unwrap();
    assert_eq!(site.get(&format!("/{file}")).bytes(), b"picture");
    let note = send(&site, "/add", &[title, ("picture", Some("note.txt"), b"note")]);
    assert!(note.text().contains("must be a picture"), "{}", note.text());
    let host = "import { page } from \"bine\";\nexport default page((ctx) => <p>{ctx.header(\"host\")}</p>);\n";
    let folder = Folder::with(&[("index.tsx", host)]);
    let site = folder.site();
    let page = site.get("/").text().to_owned();
    let (_, rest) = page.split_once("<p>").unwrap();
    let (host, _) = rest.split_once("</p>").unwrap();
    folder.write("index.tsx", &cellar.replace("127.0.0.1:8080", host));
    while !site.get("/").text().contains("Warm") {}
    let warm = |degrees: u8| site.post_json("/warm", &json!({ "degrees": degrees }));
    assert_eq!(warm(21).json::<String>(), "The cellar has 21 degrees.");
    assert_eq!(warm(30).status(), 409);
    assert!(warm(30).text().contains("That is too warm for hops."));
}
