//! Forms of browsers without script: a rejected form comes back with its values and messages.

use bine::prelude::*;
use bine::test::{Client, Method, Reply, Site};

#[derive(Table)]
struct Member {
    id: Id<Member>,
    #[table(unique, length = 1..=20, label = "The name")]
    name: Text,
    #[table(range = 18..=120, label = "The age")]
    age: u8,
    about: Text,
}

#[service]
#[allow(clippy::too_many_arguments, reason = "one for each kind of field")]
fn enroll(
    call: &mut Call,
    name: Text,
    age: u8,
    about: Text,
    secret: Text,
    kind: Text,
    news: bool,
    size: Text,
) -> Result<(), Error> {
    let _ = (secret, kind, news, size);
    call.insert(Member { id: Id::unassigned(), name, age, about })?;
    Ok(())
}

#[service]
fn rename(call: &mut Call, member: Text, name: Text) -> Result<(), Error> {
    let _ = (call, member);
    match &*name {
        "Taken" => Err(Error::conflict("this <name> is not free")),
        _ => Error::invalid_arguments([("name", "must be Taken"), ("other", "is wrong too")]),
    }
}

#[page("/club/{place}")]
async fn club(place: Path<Text>, filled: Query<Option<Text>>) -> impl Page {
    let list: Vec<Text> = vec!["one".into(), "two".into()];
    html! {
        <h1>{place} {filled.0.unwrap_or_default()}</h1>
        <input autofocus aria-label="Search">
        <a href="?page=2">Older</a> <a href="rules">Rules</a> <a href="/all">All</a>
        {for member in &list {
            <form method="post" action={rename}>
                <input type="hidden" name="member" value={member}>
                <input name="name" aria-label="Name" value={member}>
            </form>
        }}
        <form method="post" action={enroll}>
            <label>"Name" <input name="name" aria-describedby="hint"></label> <b id="hint">Short</b>
            <p><input name="age" aria-label="Age" type="number"></p>
            <textarea name="about" aria-label="About">old</textarea>
            <input type="password" name="secret" aria-label="Secret">
            <input type="hidden" name="kind" value="a&b">
            <input type="checkbox" name="news" aria-label="News" checked>
            <select name="size" aria-label="Size"><option selected>small</option> <option value="L">large</option></select>
            <button>Send</button>
        </form>
    }
}

#[page("/actions")]
async fn with_actions() -> impl Page {
    let list: Vec<Text> = vec!["one".into(), "two".into()];
    html! {
        {for member in &list {
            <form method="post" action={action!(name = "forms_note", [member: Text = member.clone()] |call, about: Text, age: u8| -> Result<(), Error> {
                call.insert(Member { id: Id::unassigned(), name: member, age, about })?;
                Ok(())
            })}>
                <input name="about" aria-label="About"> <input name="age" aria-label={member}>
            </form>
        }}
    }
}

#[page("/letters")]
async fn letters(topic: Query<Option<Text>>) -> impl Page {
    html! {
        <h1>{topic.0.unwrap_or_default()}</h1>
        <form method="post" action="/letters">
            <input name="name" aria-label="Name"> <input name="age" aria-label="Age">
        </form>
        <form method="post" action="later"><input name="name" aria-label="Later"></form>
        <form method="post" action="/pictures" enctype="multipart/form-data">
            <input name="name" aria-label="Of"> <input type="file" name="picture" aria-label="Picture">
        </form>
    }
}

#[page(POST "/letters")]
async fn write_letter(name: Form<Text>, age: Form<u8>, store: Store) -> Result<Response, Error> {
    store
        .insert(Member { id: Id::unassigned(), name: name.0, age: age.0, about: "".into() })
        .await?;
    Ok(Response::see_other("/letters"))
}

/// Rejects the form at once, without waiting.
#[page(POST "/later")]
async fn write_later(name: Form<Text>) -> Result<Response, Error> {
    Err(Error::invalid_argument("name", format!("is not {}", name.0)))
}

#[page(POST "/pictures")]
fn add_picture(name: Form<Text>, picture: Upload) -> Result<Response, Error> {
    if picture.media_type() != "image/png" {
        return Err(Error::invalid_argument("picture", format!("of {} is no PNG", name.0)));
    }
    Ok(Response::see_other("/letters"))
}

fn app() -> App {
    App::new()
        .table::<Member>()
        .in_memory()
        .page(letters)
        .page(write_letter)
        .page(write_later)
        .page(add_picture)
        .page(club)
        .page(with_actions)
        .service(enroll)
        .service(rename)
}

const VALID: &str = "name=Ann&age=30&about=x&secret=s3cret&kind=a%26b&news=on&size=L";

fn visitor(site: &Site) -> (Client, String) {
    (site.client(), format!("http://{}", site.address()))
}

/// Sends a form as a browser without script.
fn post(visitor: &(Client, String), target: &str, from: &str, body: &str) -> Reply {
    let (client, origin) = visitor;
    client
        .request(Method::Post, target)
        .header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", origin)
        .header("Referer", format!("{origin}{from}"))
        .body(body)
        .send()
}

#[track_caller]
fn check(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn returns_a_rejected_form_with_values_and_messages() {
    let site = Site::new(app());
    let client = visitor(&site);
    assert_eq!(post(&client, "/bine/enroll", "/club/a?filled=%26", VALID).status(), 303);
    let body =
        "name=Ann&age=7&about=%3C%2Ftextarea%3E%3Cb%3E%0D%0A%22&secret=s3cret&kind=a%26b&size=L";
    let reply = post(&client, "/bine/enroll", "/club/a?filled=%26", body);
    let page = reply.text();
    assert_eq!((reply.status(), reply.header("cache-control")), (422, Some("no-store")));
    assert!(reply.header("content-security-policy").is_some());
    check(
        page,
        &[
            "<h1>a &amp;</h1>",
            "<input aria-label=\"Search\" />",
            "<a href=\"/club/a?page=2\">Older</a> <a href=\"/club/rules\">Rules</a> <a href=\"/all\">",
            "<input name=\"name\" required=\"\" maxlength=\"40\" aria-invalid=\"true\" aria-describedby=\"hint invalid-2\" value=\"Ann\" /></label><p class=\"problem\" role=\"alert\" id=\"invalid-2\">is taken already</p> <b id",
            "<input name=\"age\" aria-label=\"Age\" type=\"number\" required=\"\" min=\"18\" max=\"120\" autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1\" value=\"7\" /><span class=\"problem\" role=\"alert\" id=\"invalid-1\">must be from 18 to 120, not 7</span></p>",
            "aria-label=\"About\">\n&lt;/textarea&gt;&lt;b&gt;\n&quot;</textarea>",
            "<input type=\"checkbox\" name=\"news\" aria-label=\"News\" />",
            "<option>small</option> <option value=\"L\" selected=\"\">large</option>",
            "<form method=\"post\" action=\"/bine/enroll?_page=%2Fclub%2Fa%3Ffilled%3D%2526\">",
        ],
    );
    assert!(!page.contains("s3cret") && !page.contains("old"), "{page}");
    assert_eq!(page.matches("autofocus").count(), 1, "{page}");

    // The forms of the returned page, whose address is that of the service, name their page.
    let again = "/bine/enroll?_page=%2Fclub%2Fa%3Ffilled%3D%2526";
    let reply = post(&client, again, "/bine/enroll", body);
    assert_eq!(reply.status(), 422);
    check(reply.text(), &["<h1>a &amp;</h1>", "value=\"7\"", again]);
    let reply = post(&client, again, again, &VALID.replace("Ann", "Ben"));
    assert_eq!((reply.status(), reply.header("location")), (303, Some("/club/a?filled=%26")));
}

#[test]
fn returns_a_form_that_only_conflicts_as_409() {
    let site = Site::new(app());
    let client = visitor(&site);
    assert_eq!(post(&client, "/bine/enroll", "/club/a", VALID).status(), 303);
    let reply = post(&client, "/bine/enroll", "/club/a", VALID);
    assert_eq!(reply.status(), 409);
    check(reply.text(), &["is taken already", "name=\"news\" aria-label=\"News\" checked=\"\" />"]);
}

#[test]
fn returns_unreadable_arguments_as_422() {
    let site = Site::new(app());
    let body = VALID.replace("age=30", "age=%22old%22&unknown=1");
    let reply = post(&visitor(&site), "/bine/enroll", "/club/a", &body);
    assert_eq!(reply.status(), 422);
    check(
        reply.text(),
        &[
            "value=\"&quot;old&quot;\"",
            "must be a whole number from 0 to 255, not `&quot;old&quot;`",
            "<p class=\"problem\" role=\"alert\" id=\"invalid-0\">unknown: is no argument of this service</p></form>",
        ],
    );
    // Programs still get the status of a malformed call.
    let reply = site
        .request(Method::Post, "/bine/enroll")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body)
        .send();
    assert_eq!(reply.status(), 400);
}

#[test]
fn finds_the_form_by_its_hidden_fields() {
    let site = Site::new(app());
    let client = visitor(&site);
    let reply = post(&client, "/bine/rename", "/club/a", "member=two&name=x");
    assert_eq!(reply.status(), 422);
    check(
        reply.text(),
        &[
            "<input name=\"name\" aria-label=\"Name\" value=\"one\" />",
            "value=\"two\" /><input name=\"name\" aria-label=\"Name\" autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1\" value=\"x\" /><p class=\"problem\" role=\"alert\" id=\"invalid-1\">must be Taken</p><p class=\"problem\" role=\"alert\" id=\"invalid-0\">other: is wrong too</p></form>",
        ],
    );
    // An error without a field is at the end of the form.
    let reply = post(&client, "/bine/rename", "/club/a", "member=one&name=Taken");
    assert_eq!(reply.status(), 409);
    check(
        reply.text(),
        &[
            "value=\"Taken\" />",
            "id=\"invalid-0\" tabindex=\"-1\" autofocus=\"\">this &lt;name&gt; is not free</p></form>",
        ],
    );
}

#[test]
fn answers_with_the_error_page_without_the_page_of_the_form() {
    let site = Site::new(app());
    let client = visitor(&site);
    for (target, from) in [
        ("/bine/rename", "/elsewhere"),
        ("/bine/rename", "/bine/enroll"),
        ("/bine/rename?_page=%2F%2Fevil.example", "/actions"),
        ("/bine/rename?_page=https%3A%2F%2Fevil.example%2F", "/actions"),
    ] {
        let reply = post(&client, target, from, "member=one&name=x");
        assert_eq!(reply.status(), 422, "{target} {from}");
        assert!(reply.text().contains("<h1>Unprocessable Content</h1>"), "{}", reply.text());
        assert!(!reply.text().contains("evil"), "{}", reply.text());
    }
    // No row has this hidden field.
    let reply = post(&client, "/bine/rename", "/club/a", "member=three&name=x");
    assert!(reply.text().contains("<h1>Unprocessable Content</h1>"), "{}", reply.text());
    // A page of another site gets nothing back.
    let reply = client
        .0
        .request(Method::Post, "/bine/rename")
        .header("Accept", "text/html")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", "http://evil.example")
        .body("member=one&name=x")
        .send();
    assert_eq!(reply.status(), 403);
}

#[test]
fn returns_the_form_of_an_action() {
    let site = Site::new(app());
    let client = visitor(&site);
    let page = client.0.get("/actions");
    let actions: Vec<String> = page
        .text()
        .split("action=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let reply = post(&client, &actions[1], "/actions", "about=hops+%26+malt&age=7");
    assert_eq!(reply.status(), 422);
    let page = reply.text();
    let second = page.split("<form").nth(2).unwrap();
    check(second, &["value=\"hops &amp; malt\"", "value=\"7\"", "must be from 18 to 120, not 7"]);
    assert!(!page.split("<form").nth(1).unwrap().contains("problem"), "{page}");
    // The form works again from the returned page.
    let action = second.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    let reply = post(&client, action, &actions[1], "about=x&age=40");
    assert_eq!((reply.status(), reply.header("location")), (303, Some("/actions")));
}

#[test]
fn returns_a_multipart_form() {
    let site = Site::new(app());
    let parts = [("member", "two"), ("name", "\"x\"")].map(|(name, value)| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    });
    let reply = site
        .request(Method::Post, "/bine/rename")
        .header("Accept", "text/html,*/*;q=0.8")
        .header("Content-Type", "multipart/form-data; boundary=b")
        .header("Referer", format!("http://{}/club/a", site.address()))
        .body(parts.concat() + "--b--\r\n")
        .send();
    assert_eq!(reply.status(), 422);
    check(reply.text(), &["value=\"&quot;x&quot;\"", "must be Taken"]);
}

/// The visitor got an error page, and the browser's Back button was the way to the values.
#[test]
fn pages_return_a_rejected_form_with_values_and_messages() {
    let site = Site::new(app());
    let client = visitor(&site);
    // The handler does not run.
    let reply = post(&client, "/letters", "/letters?topic=hops", "name=Ann&age=x");
    assert_eq!((reply.status(), reply.header("cache-control")), (422, Some("no-store")));
    let again = "action=\"/letters?_page=%2Fletters%3Ftopic%3Dhops\"";
    let fields = "<input name=\"name\" aria-label=\"Name\" value=\"Ann\" /> <input name=\"age\" aria-label=\"Age\" autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1\" value=\"x\" /><p class=\"problem\" role=\"alert\" id=\"invalid-1\">must be a whole number from 0 to 255, not `x`</p>";
    check(reply.text(), &["<h1>hops</h1>", again, fields, "action=\"/later?_page="]);
    // The handler waits for the store.
    let target = "/letters?_page=%2Fletters%3Ftopic%3Dhops";
    let reply = post(&client, target, "/letters", "name=&age=7");
    assert_eq!(reply.status(), 422);
    let messages = ["must have from 1 to 20 letters, not 0", "must be from 18 to 120, not 7"];
    check(reply.text(), &["<h1>hops</h1>", messages[0], messages[1], "value=\"7\""]);
    let reply = post(&client, "/later", "/letters", "name=%3Cb%3E");
    assert_eq!(reply.status(), 422);
    check(reply.text(), &["value=\"&lt;b&gt;\"", "is not &lt;b&gt;</p>"]);
    assert_eq!(post(&client, "/letters", "/letters", "name=Ann&age=30").status(), 303);
}

#[test]
fn pages_with_files_return_the_texts_of_a_rejected_form() {
    let site = Site::new(app());
    let (client, origin) = visitor(&site);
    let send = |picture: &[u8]| {
        let head = "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAnn\r\n--b\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"a.txt\"\r\n\r\n";
        let request = client.request(Method::Post, "/pictures");
        let request = request.header("Accept", "text/html").header("Origin", &*origin);
        let request = request.header("Referer", format!("{origin}/letters"));
        let request = request.header("Content-Type", "multipart/form-data; boundary=b");
        request.body([head.as_bytes(), picture, b"\r\n--b--"].concat()).send()
    };
    // The second one is on disk.
    for length in [1, 600 << 10] {
        let reply = send(&vec![b'x'; length]);
        assert_eq!(reply.status(), 422, "{}", reply.text());
        check(
            reply.text(),
            &[
                "aria-label=\"Of\" value=\"Ann\" />",
                "<input type=\"file\" name=\"picture\" aria-label=\"Picture\" autofocus=\"\" aria-invalid=\"true\" aria-describedby=\"invalid-1\" /><p class=\"problem\" role=\"alert\" id=\"invalid-1\">of Ann is no PNG</p>",
            ],
        );
    }
    // Without a file, the argument is missing.
    let request = client.request(Method::Post, "/pictures").header("Accept", "text/html");
    let request = request.header("Origin", &*origin).header("Referer", format!("{origin}/letters"));
    let request = request.header("Content-Type", "multipart/form-data; boundary=b");
    let body = "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nBen\r\n--b\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"\"\r\n\r\n\r\n--b--";
    let reply = request.body(body).send();
    assert_eq!(reply.status(), 422, "{}", reply.text());
    check(reply.text(), &["value=\"Ben\"", "is missing from the form</p>"]);
}

/// A program gets the message alone, and so does a browser whose page is unknown.
#[test]
fn pages_answer_other_clients_with_the_error() {
    let site = Site::new(app());
    let client = visitor(&site);
    let unknown = post(&client, "/letters", "/nowhere", "name=Ann&age=x");
    assert_eq!(unknown.status(), 400);
    assert!(!unknown.text().contains("<form"), "{}", unknown.text());
    let program = site.request(Method::Post, "/letters").body("name=Ann&age=x");
    let program = program.header("Content-Type", "application/x-www-form-urlencoded").send();
    assert_eq!(
        (program.status(), program.text()),
        (400, "`age` must be a whole number from 0 to 255, not `x`\n")
    );
}
