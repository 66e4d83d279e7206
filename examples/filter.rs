//! Filters, which the server applies to every request before its page, in the order of their
//! registration.
//!
//! `cargo run --release --example filter`, then
//! `curl -i http://127.0.0.1:8080/`, `/welcome.html`, `/drafts/1`, `/drafts/1?key=hops`.

use bine::prelude::*;
use bine::{Filter, FilterDecision, FilterRequest};

/// Addresses of an earlier site, which still work.
struct OldAddresses;

impl Filter for OldAddresses {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        match request.path().strip_suffix(".html") {
            Some("/welcome") => FilterDecision::Rewrite("/".into()),
            // A permanent redirect.
            Some(page) => FilterDecision::Respond(Response::permanent_redirect(page.to_owned())),
            None => FilterDecision::Continue,
        }
    }
}

/// Hides drafts from visitors without the key.
struct Curtain;

impl Filter for Curtain {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        let knows = request.query() == Some("key=hops");
        if knows || !request.path().starts_with("/drafts/") {
            return FilterDecision::Continue;
        }
        FilterDecision::Respond(Response::error(Status::NOT_FOUND, "There is no such page."))
    }
}

#[page("/")]
async fn home() -> impl Page {
    html!(<h1>Welcome</h1>)
}

#[page("/drafts/{name}")]
async fn draft(name: Path<Text>) -> impl Page {
    html!(<h1>Draft {name}</h1>)
}

fn main() -> Exit {
    App::new().filter(OldAddresses).filter(Curtain).page(home).page(draft).run()
}
