//! The kanban example: what its users can do, and what others cannot.

use bine::test::{Client, Method, Tab};
use serde_json::{Value, json};

use crate::examples::example;
use crate::harness::{Folder, Program};
use crate::intruders::send_command;

const PASSWORD: &str = "hop vines in May";

/// Starts the example with cheap password hashes and its attachments in a temporary folder.
fn kanban(folder: &Folder) -> Program {
    let mut command = example("kanban");
    command.args(["--listen", "127.0.0.1:0", "--data", "memory"]).envs([
        ("KANBAN_HASHING", "8"),
        ("KANBAN_FILES", folder.join("files").to_str().unwrap()),
        ("KANBAN_ADDRESS", "http://kanban.example"),
        ("BINE_DEVELOPMENT", "on"),
        ("BINE_CONTROL", folder.join("control").to_str().unwrap()),
    ]);
    Program::start(&mut command)
}

fn sign_up(program: &Program, name: &str) -> Client {
    let client = Client::at(program.address());
    let mut tab = client.visit("/sign-up");
    tab.submit("main form", [("name", name), ("password", PASSWORD)]);
    tab.expect("h1", "Your account");
    client
}

/// Creates a board and returns its tab.
fn create_board(client: &Client, title: &str, is_public: bool) -> Tab {
    let mut tab = client.visit("/");
    let is_public = if is_public { "on" } else { "" };
    tab.submit("form[action='/boards']", [("title", title), ("is_public", is_public)]);
    tab.expect("h1", title);
    tab
}

fn add_card(tab: &mut Tab, title: &str) {
    tab.submit(".lane:first-child .add", [("title", title)]);
    tab.expect(".lane:first-child .card > a", title);
}

/// Joins the team by the link that the board of its owner shows.
fn join(client: &Client, owner: &mut Tab) -> Tab {
    let mut tab = client.visit(&owner.text(".people code"));
    tab.click("main form button");
    tab.expect_count(".lane .add", 3);
    tab
}

/// The address of the only card of a board.
fn open_card(tab: &mut Tab) -> String {
    tab.click(".card > a");
    tab.expect("h2", "Comments");
    tab.url().to_owned()
}

fn entries(client: &Client, path: &str) -> Value {
    let reply = client.get(path);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.json()
}

#[test]
fn user_signs_up_creates_board_and_describes_card() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let ann = sign_up(&program, "Ann");
    let mut tab = create_board(&ann, "Brewery", false);
    assert_eq!(tab.texts(".lane h2"), ["To do 0", "Doing 0", "Done 0"]);
    add_card(&mut tab, "Buy hops");
    let card = open_card(&mut tab);
    let values = [
        ("text", "Ten kilos"),
        ("labels", "urgent, hops"),
        ("assignee", "ann"),
        ("due", "2020-02-03"),
    ];
    tab.submit("#card", values);
    tab.submit("#comment", [("text", "Which ones?")]);
    tab.expect(".comments .text", "Which ones?");
    tab.visit(&card);
    assert_eq!(tab.text("textarea[name=text]"), "Ten kilos");
    tab.click("main > p > a");
    assert_eq!(
        tab.texts(".card .facts > span"),
        ["urgent", "hops", "3 Feb 2020", "@ann", "1 comment"]
    );
    tab.click("button[name=to][value=right]");
    tab.expect(".lane:nth-child(2) .card > a", "Buy hops");
    tab.click(".site form button");
    tab.expect("h1", "Log in");
    tab.visit("/");
    tab.expect("h1", "A board for each team");
}

#[test]
fn changes_of_one_member_appear_at_another() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let (ann, ben) = (sign_up(&program, "Ann"), sign_up(&program, "Ben"));
    let mut desk = create_board(&ann, "Brewery", false);
    let mut other = join(&ben, &mut desk);
    desk.expect(".people li", "ben");
    desk.expect(".presence", "2 here");
    add_card(&mut desk, "Buy hops");
    other.expect(".card > a", "Buy hops");
    other.click("button[name=to][value=right]");
    desk.expect(".lane:nth-child(2) .card > a", "Buy hops");
}

#[test]
fn cards_keep_their_order_through_moves() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let ann = sign_up(&program, "Ann");
    let mut tab = create_board(&ann, "Brewery", false);
    for title in ["one", "two", "three"] {
        add_card(&mut tab, title);
    }
    tab.click(".card:last-child button[value=up]");
    tab.expect(".card:nth-child(2) > a", "three");
    let boards = entries(&ann, "/api/boards");
    let board = boards[0]["id"].as_str().unwrap();
    let lane = &boards[0]["lanes"][2]["id"];
    let list = format!("/api/cards?board={board}");
    for (title, before, order) in [
        ("two", None, ["one", "three", "two"]),
        ("one", Some("two"), ["three", "one", "two"]),
        ("three", Some("two"), ["one", "three", "two"]),
    ] {
        let cards = entries(&ann, &list);
        let id = |title: &str| {
            let mut cards = cards.as_array().unwrap().iter();
            cards.find(|card| card["title"] == title).unwrap()["id"].clone()
        };
        let call = json!({ "card": id(title), "lane": lane, "before": before.map(id) });
        assert_eq!(ann.post_json("/api/cards/move", &call).status(), 204);
        let cards = entries(&ann, &list);
        let titles: Vec<&Value> =
            cards.as_array().unwrap().iter().map(|card| &card["title"]).collect();
        assert_eq!(titles, order);
    }
}

#[test]
fn board_admits_its_team_and_readers_only() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let [ann, ben, eve, root] = ["Ann", "Ben", "Eve", "Root"].map(|name| sign_up(&program, name));
    let group = ["user", "group", "Root", "+administrators"];
    assert!(send_command(&folder.join("control"), &group).starts_with("ok\n"));
    let mut desk = create_board(&ann, "Brewery", false);
    let address = desk.url().to_owned();
    let visitor = Client::at(program.address());
    assert_eq!(visitor.get(&address).status(), 401);
    assert_eq!(visitor.post_json("/api/cards/add", &json!({})).status(), 401);
    assert_eq!(eve.get(&address).status(), 403);
    assert_eq!(root.get(&address).status(), 200);
    let mut other = join(&ben, &mut desk);
    add_card(&mut other, "Buy hops");

    // A member who only reads: the forms disappear from the open page, and calls are rejected.
    desk.click(".people button[value=reader]");
    other.expect_count(".lane .add", 0);
    let board = entries(&ann, "/api/boards")[0].clone();
    let call = json!({ "lane": board["lanes"][0]["id"], "title": "Buy malt" });
    assert_eq!(ben.post_json("/api/cards/add", &call).status(), 403);
    assert_eq!(eve.post_json("/api/cards/add", &call).status(), 403);
    assert_eq!(ann.post_json("/api/cards/add", &call).status(), 200);
    let list = format!("/api/cards?board={}", board["id"].as_str().unwrap());
    assert_eq!(entries(&ben, &list).as_array().unwrap().len(), 2);
    assert_eq!(eve.get(&list).status(), 403);
    let people = format!("{address}/people");
    let promote = || {
        ben.request(Method::Post, &people)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body("user=Ben&role=writer")
            .send()
    };
    assert_eq!(promote().status(), 403);

    let link = desk.text(".people code");
    assert_eq!(ben.get(&link).status(), 200);
    desk.click(".people button[value=none]");
    desk.expect_none(".people li", "ben");
    assert_eq!(ben.get(&address).status(), 403);
    assert_eq!(ben.get(&list).status(), 403);
    assert_eq!(ben.get(&link).status(), 404);
}

#[test]
fn all_users_read_a_public_board() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let (ann, eve) = (sign_up(&program, "Ann"), sign_up(&program, "Eve"));
    let mut desk = create_board(&ann, "Brewery", true);
    add_card(&mut desk, "Buy hops");
    let mut tab = eve.visit("/");
    tab.click(".boards a");
    tab.expect(".card > a", "Buy hops");
    assert_eq!((tab.count("main form"), tab.count(".people code")), (0, 0));
    let card = open_card(&mut tab);
    assert_eq!(eve.request(Method::Post, &format!("{card}/files")).send().status(), 403);
}

#[test]
fn card_stores_attachments_of_listed_types_and_sizes() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let (ann, eve) = (sign_up(&program, "Ann"), sign_up(&program, "Eve"));
    let mut tab = create_board(&ann, "Brewery", false);
    add_card(&mut tab, "Buy hops");
    open_card(&mut tab);
    tab.choose("#attach [type=file]", "page.html", "text/html", "<script>");
    tab.click("#attach button");
    tab.expect("#attach [role=alert]", "must be one of these: png");
    tab.choose("#attach [type=file]", "long.txt", "text/plain", vec![b'a'; (5 << 20) + 1]);
    tab.click("#attach button");
    tab.expect("#attach [role=alert]", "must have at most 5 MiB");
    tab.choose("#attach [type=file]", "../list.TXT", "text/plain", "hops, malt");
    tab.click("#attach button");
    tab.expect(".files a", "list.TXT");
    let tree = tab.tree();
    let file = tree.find(".files a").unwrap().unwrap().attribute("href").unwrap().to_owned();
    let reply = ann.get(&file);
    assert_eq!((reply.status(), reply.text()), (200, "hops, malt"));
    assert_eq!(reply.header("Content-Security-Policy"), Some("sandbox"));
    assert_eq!(eve.get(&file).status(), 403);
    let mut other = create_board(&eve, "Malt house", false);
    let stolen =
        file.replacen(file.split('/').nth(2).unwrap(), other.url().rsplit('/').next().unwrap(), 1);
    assert_eq!(eve.get(&stolen).status(), 404);
    other.reload();
    tab.click(".files button");
    tab.expect_count(".files a", 0);
    assert_eq!(std::fs::read_dir(folder.join("files")).unwrap().count(), 0);
}

#[test]
fn program_with_token_uses_the_api() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let ann = sign_up(&program, "Ann");
    let mut desk = create_board(&ann, "Brewery", false);
    let mut tab = ann.visit("/account/tokens");
    tab.submit("main form", [("label", "export")]);
    let token = tab.text("code");
    let script = Client::at(program.address());
    let bearer = format!("Bearer {token}");
    let get =
        |path: &str| script.request(Method::Get, path).header("Authorization", &*bearer).send();
    let boards: Value = get("/api/boards").json();
    let call = json!({ "lane": boards[0]["lanes"][1]["id"], "title": "Brew" });
    let post = || script.request(Method::Post, "/api/cards/add").json(&call);
    let reply = post().header("Authorization", &*bearer).send();
    assert_eq!(reply.status(), 200, "{}", reply.text());
    desk.expect(".lane:nth-child(2) .card > a", "Brew");
    assert_eq!(post().send().status(), 401);
    assert_eq!(post().header("Authorization", format!("{bearer}x")).send().status(), 401);
}

#[test]
fn invalid_fields_have_messages_beside_them() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let ann = sign_up(&program, "Ann");
    let mut tab = create_board(&ann, "Brewery", false);
    add_card(&mut tab, "Buy hops");
    let address = open_card(&mut tab);
    let long = "a".repeat(121);
    tab.submit("#card", [("title", &*long)]);
    tab.expect("#card label [role=alert], #card [role=alert]", "must have from 1 to 120 letters");

    // Without a script, the page returns with the values and the messages.
    let card = address.rsplit('/').next().unwrap();
    let form = format!("card={card}&title={long}&text=Ten&labels=&assignee=&due=");
    let request = ann.request(Method::Post, "/api/cards/edit");
    let request = request
        .header("Accept", "text/html")
        .header("Referer", format!("http://{}{address}", program.address()));
    let reply =
        request.header("Content-Type", "application/x-www-form-urlencoded").body(form).send();
    assert_eq!(reply.status(), 422);
    assert!(reply.text().contains("must have from 1 to 120 letters"), "{}", reply.text());
    assert!(reply.text().contains("\nTen</textarea>"), "{}", reply.text());

    let call = json!({ "card": card, "title": "a", "text": "", "labels": "", "assignee": "Eve" });
    let problem: Value = ann.post_json("/api/cards/edit", &call).json();
    assert_eq!(problem["errors"][0]["name"], "assignee");
    let call = json!({ "card": card, "title": "a", "text": "", "labels": "", "due": "soon" });
    let problem: Value = ann.post_json("/api/cards/edit", &call).json();
    assert_eq!(problem["errors"][0]["name"], "due");
}

#[test]
fn user_sets_a_forgotten_password_by_a_mail() {
    let folder = Folder::new();
    let mut program = kanban(&folder);
    let address = program.address();
    let mut tab = Client::at(address).visit("/sign-up");
    let values = [("name", "Ann"), ("email", "ann@kanban.example"), ("password", PASSWORD)];
    tab.submit("main form", values);
    tab.expect("h1", "Your account");
    let mut link = || {
        let line = program.await_line("mail to ann@kanban.example: ");
        line.rsplit_once("http://kanban.example").unwrap().1.to_owned()
    };
    tab.visit(&link());
    tab.click("main form button");
    let mut other = Client::at(address).visit("/forgot-password");
    other.submit("main form", [("email", "ann@kanban.example")]);
    other.visit(&link());
    other.submit("main form", [("new_password", "hop vines in June")]);
    other.visit("/log-in");
    other.submit("main form", [("name", "ann"), ("password", PASSWORD)]);
    other.expect("[role=alert]", "");
    other.submit("main form", [("name", "ann"), ("password", "hop vines in June")]);
    other.visit("/account");
    other.expect("h1", "Your account");
}

#[test]
fn data_browser_records_who_changed_a_board() {
    let folder = Folder::new();
    let program = kanban(&folder);
    let ann = sign_up(&program, "Ann");
    let mut desk = create_board(&ann, "Brewery", false);
    let board = desk.url().rsplit('/').next().unwrap().to_owned();
    let mut tab = ann.visit(&format!("/_bine/data/tables/board/rows/{board}"));
    tab.submit("form.row", [("value.title", "Malt house")]);
    tab.visit("/_bine/data/audit");
    tab.expect("td", "Ann");
    tab.expect("td", "Malt house");
    desk.reload();
    desk.expect("h1", "Malt house");
}
