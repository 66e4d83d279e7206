//! The auction's home and item pages in TSX: the same bytes as in Rust.

use std::time::Duration;

use bine::test::{Reply, Site};

#[path = "../../../../examples/auction/access.rs"]
mod access;
#[path = "../../../../examples/auction/auction.rs"]
mod auction;
#[path = "../../../../examples/auction/database.rs"]
mod database;
#[path = "../../../../examples/auction/pages/mod.rs"]
mod pages;
#[path = "../../../../examples/auction/program.rs"]
mod program;
#[path = "../../../../examples/auction/seed.rs"]
mod seed;
#[path = "../../../../examples/auction/services.rs"]
mod services;
#[allow(dead_code, reason = "the tests have settings of their own")]
#[path = "../../../../examples/auction/settings.rs"]
mod settings;
#[path = "../../../../examples/auction/tables.rs"]
mod tables;

fn site() -> Site {
    let no_time = Duration::ZERO;
    let settings = settings::Settings {
        scale: 0.001,
        seed: 1,
        delay: no_time,
        hashes: 0,
        secret: String::new(),
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/auction/site");
    Site::new(services::with_scripts(program::app(settings), folder))
}

/// The status, the media type and the body of a page, as a browser asks for it.
fn page(site: &Site, path: &str, accept: &str) -> (u16, Option<String>, String) {
    let request = site.request(bine::test::Method::Get, path);
    let reply: Reply = request.header("Accept", accept).send();
    (reply.status(), reply.header("content-type").map(ToOwned::to_owned), reply.text().to_owned())
}

/// Asserts that both languages answer the path alike. A page with the time that is left may change
/// between two requests, so the page in Rust is requested until it is the same before and after the one
/// in TSX.
#[track_caller]
fn check(site: &Site, path: &str, accept: &str) -> String {
    loop {
        let before = page(site, path, accept);
        let script = page(site, &format!("/tsx{path}"), accept);
        if page(site, path, accept) == before {
            assert_eq!(script, before, "{path}");
            return script.2;
        }
    }
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The paths of all items for sale.
fn items(site: &Site) -> Vec<String> {
    let categories = site.get("/categories").text().to_owned();
    let paths = |page: &str, start: &str| -> Vec<String> {
        let links = page.split("href=\"").skip(1).filter_map(|link| link.split_once('"'));
        let own = links.map(|(link, _)| link.to_owned());
        own.filter(|link| link.starts_with(start) && link.matches('/').count() == 2).collect()
    };
    let of_each = paths(&categories, "/categories/").into_iter().flat_map(|category| {
        let listed = site.get(&category).text().to_owned();
        paths(&listed, "/items/")
    });
    of_each.collect()
}

#[test]
fn sends_the_bytes_of_rust_from_home_and_item_pages_in_tsx() {
    let site = site();
    assert!(check(&site, "/", BROWSER).contains("<title>The Hopyard, an auction house</title>"));
    let items = items(&site);
    assert!(items.len() > 30, "{}", items.len());
    let pages: Vec<String> = items.iter().map(|item| check(&site, item, BROWSER)).collect();
    // Items with each kind of price and bid are among them.
    for text in ["Buy it now for $", ">Begins at<", ">Highest bid<", ">none<", ">not reached<"] {
        assert!(pages.iter().any(|page| page.contains(text)), "{text}");
    }
}

#[test]
fn sends_the_bytes_of_rust_for_errors_in_tsx() {
    let site = site();
    let unknown = "/items/00000000-0000-7000-8000-000000000000";
    for accept in [BROWSER, "*/*", "application/json"] {
        assert!(check(&site, unknown, accept).contains("there is no such item"));
        check(&site, "/items/nonsense", accept);
        check(&site, "/items/%3Cb%3E", accept);
        check(&site, "/nowhere", accept);
    }
}
