//! The auction example: its users' actions, and the bench's sessions that walk through it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bine::test::{Client, Method, Tab};

use crate::examples::example;
use crate::harness::{Folder, Peer, Program};
use rubis::{Mix, PageSeen, Request, State, Step, Walk};

#[allow(dead_code, reason = "what does not walk through the house is measured elsewhere")]
#[path = "../../../../bench/src/random.rs"]
mod random;
#[allow(
    dead_code,
    unused_imports,
    reason = "what does not walk through the house is measured elsewhere"
)]
#[path = "../../../../bench/src/rubis/mod.rs"]
mod rubis;

/// Starts the example with a thousand users and some 40 items.
fn house() -> Program {
    let mut command = example("auction");
    Program::start(command.args(["--listen", "127.0.0.1:0"]).env("AUCTION_SCALE", "0.001"))
}

fn log_in(tab: &mut Tab, name: &str, password: &str) {
    tab.submit("main form", [("name", name), ("password", password)]);
}

/// Registers a user.
fn register(tab: &mut Tab, name: &str) {
    tab.visit("/register");
    let words = [
        ("first", "Ann"),
        ("last", "Hop"),
        ("name", name),
        ("password", "long enough"),
        ("region", "oslo"),
    ];
    tab.submit("main form", words);
    tab.expect("h1", "Welcome, Ann");
}

/// Registers a seller who offers an item. Returns its address.
fn sell(address: SocketAddr, seller: &str, words: &[(&str, &str)]) -> String {
    let mut tab = Client::at(address).visit("/");
    register(&mut tab, seller);
    tab.visit("/sell");
    log_in(&mut tab, seller, "long enough");
    tab.click("button[value=coins]");
    tab.expect("h1", "Sell in Coins");
    let usual =
        [("name", "A <rare> penny"), ("description", "Found in a field."), ("price", "100")];
    tab.submit("main form", usual.iter().chain(words).copied());
    tab.click("main a");
    tab.url().to_owned()
}

#[test]
fn accepts_higher_bid_and_reports_lower_one() {
    let house = house();
    let item = sell(house.address(), "ann", &[("reserve", "150")]);
    let mut slow = Client::at(house.address()).visit(&format!("{item}/bid"));
    log_in(&mut slow, "user1", "password1");
    let mut quick = slow.open(&format!("{item}/bid"));
    log_in(&mut quick, "user2", "password2");
    quick.submit("main form", [("amount", "120")]);
    quick.expect("h1", "Your bid counts");
    slow.submit("main form", [("amount", "110")]);
    slow.expect("[role=alert]", "$110 is not enough any more: others have bid, too.");
    slow.submit("main form", [("amount", "160")]);
    slow.expect("h1", "Your bid counts");
    let mut tab = slow.open(&item);
    tab.expect("h1", "A <rare> penny");
    tab.expect("dd", "$160");
    tab.expect("dd", |text: &str| text == "reached");
    tab.visit(&format!("{item}/bids"));
    assert_eq!(tab.texts("main li a"), ["user1", "user2"]);
    tab.visit("/me");
    log_in(&mut tab, "user2", "password2");
    tab.expect("li", "A <rare> penny $120 others have bid more");
}

#[test]
fn sells_items_at_fixed_price() {
    let house = house();
    let item = sell(house.address(), "ann", &[("buy_now", "300"), ("quantity", "2")]);
    let mut tab = Client::at(house.address()).visit(&item);
    tab.click("[href$='/buy']");
    log_in(&mut tab, "user1", "password1");
    tab.submit("main form", [("quantity", "2")]);
    tab.expect("h1", "It is yours");
    tab.visit(&item);
    tab.expect("dd", "sold");
    tab.visit(&format!("{item}/bid"));
    log_in(&mut tab, "user2", "password2");
    assert_eq!(tab.status(), 409);
    assert!(tab.tree().text().contains("this auction has ended: it was sold"));
    tab.visit("/me");
    log_in(&mut tab, "user1", "password1");
    tab.expect("li", "A <rare> penny $300 2, on");
}

#[test]
fn shows_comments_and_counts_ratings() {
    let house = house();
    let item = sell(house.address(), "ann", &[]);
    let mut tab = Client::at(house.address()).visit(&item);
    tab.click("[href*='/comment']");
    log_in(&mut tab, "user7", "password7");
    tab.submit("main form", [("rating", "-3"), ("words", "It was <bent>.")]);
    tab.click("main a");
    tab.expect("h1", "ann");
    tab.expect("dd", "-3");
    tab.expect("article", "user7 -3, about A <rare> penny");
    tab.expect("blockquote", "It was <bent>.");
}

#[test]
fn requires_password_to_act_as_user() {
    let house = house();
    let item = sell(house.address(), "ann", &[]);
    let visitor = Client::at(house.address());
    let mut tab = visitor.visit(&format!("{item}/bid"));
    for (name, password) in [("ann", "not it at all"), ("nobody", "long enough")] {
        tab.visit(&format!("{item}/bid"));
        log_in(&mut tab, name, password);
        assert_eq!(tab.status(), 403);
        assert!(tab.tree().text().contains("no user of this name with this password"));
    }
    // Forged passes, and one with a changed expiry.
    tab.visit(&format!("{item}/bid"));
    log_in(&mut tab, "user1", "password1");
    let page = tab.tree().to_string();
    let pass = PageSeen::read(page.as_bytes()).pass.unwrap();
    let (user, rest) = pass.split_once('.').unwrap();
    for pass in [format!("{user}.9{rest}"), "a.b.c".to_owned(), String::new()] {
        let bid = visitor.request(Method::Post, &format!("{item}/bids"));
        let bid = bid.header("Content-Type", "application/x-www-form-urlencoded");
        let reply = bid.body(format!("pass={pass}&amount=1000")).send();
        assert_eq!(reply.status(), 403, "{pass}");
    }
}

#[test]
fn registers_a_name_once() {
    let house = house();
    let mut tab = Client::at(house.address()).visit("/");
    register(&mut tab, "ann");
    tab.visit("/register");
    let words = [("first", "A"), ("last", "B"), ("name", "ann"), ("password", "long enough")];
    tab.submit("main form", words);
    assert_eq!(tab.status(), 409);
    assert!(tab.tree().text().contains("the name ann is taken"));
}

#[test]
fn rejects_wrong_settings_before_creating_data() {
    for (name, value) in
        [("AUCTION_SCALE", "7"), ("AUCTION_SCALE", "all"), ("AUCTION_DELAY_MS", "-1")]
    {
        let ended = Program::run(example("auction").env(name, value));
        assert_eq!(ended.code, Some(2), "{name}={value}");
        assert!(ended.errors.contains(name), "{}", ended.errors);
    }
}

#[test]
fn keeps_data_across_restart_and_rejects_other_scale() {
    let folder = Folder::new();
    let start = |scale: &str| {
        let mut command = example("auction");
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        command.env("AUCTION_SCALE", scale);
        command
    };
    let house = Program::start(&mut start("0.0002"));
    let item = sell(house.address(), "ann", &[]);
    house.stop();
    let ended = Program::run(&mut start("0.001"));
    assert!(ended.code != Some(0) && ended.errors.contains("remove it"), "{}", ended.errors);
    let house = Program::start(&mut start("0.0002"));
    Client::at(house.address()).visit(&item).expect("h1", "A <rare> penny");
}

/// Sends a request as the bench's client emulator does.
fn ask(peer: &mut Peer, request: &Request) -> (u16, PageSeen) {
    let (method, path) = (request.method, &request.path);
    let body = request.body.as_deref().unwrap_or_default();
    peer.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let reply = peer.reply();
    (reply.status(), PageSeen::read(&reply.body))
}

#[test]
fn serves_every_page_that_bench_sessions_request() {
    let house = house();
    let mut peer = house.connect();
    let mut met = BTreeSet::new();
    for (seed, mix) in (0..40).map(|seed| (seed, Mix::Bidding)).chain([(0, Mix::Browsing)]) {
        let mut walk = Walk::new(seed, mix).with_users(1000);
        let mut seen = PageSeen::default();
        while let Step::Page(request) = walk.next(&seen) {
            let (status, shown) = ask(&mut peer, &request);
            assert_eq!(status, 200, "{request:?}");
            assert!((1..=request.state.most_images()).contains(&shown.images.len()), "{request:?}");
            assert!(shown.images.iter().all(|image| image == "/logo.svg" || image == "/bid.svg"));
            met.insert(request.state);
            seen = shown;
        }
    }
    let missed: Vec<_> = State::ALL.iter().filter(|state| !met.contains(state)).collect();
    assert!(missed.is_empty(), "no session visited {missed:?}");
    for image in ["/logo.svg", "/bid.svg"] {
        assert_eq!(peer.get(image).header("Content-Type"), Some("image/svg+xml"));
    }
}
