//! The frame of the data browser's pages, and its header fields.

use bine_html::{Flow, Html, Page, Writer};
use bine_http::Status;

use super::access::DataViewer;
use super::address::Place;
use crate::respond::Response;

/// A page of the data browser, apart from its content.
pub(super) struct PageFrame<'p> {
    pub(super) viewer: &'p DataViewer,
    pub(super) title: String,
    /// The pages above this one: address and name.
    pub(super) trail: Vec<(String, String)>,
    pub(super) status: Status,
}

/// The policy of the pages: no script, and no resource of a foreign origin.
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("style.css");

impl PageFrame<'_> {
    /// Renders the whole page.
    pub(super) fn response(self, content: impl Html<Flow>) -> Response {
        let Self { viewer, title, trail, status } = self;
        let heading = title.clone();
        let (style, home, audit) =
            (Place::Style.address(), Place::Tables.address(), Place::Audit.address());
        let user = viewer.user.clone();
        let is_local = !viewer.is_administrator;
        let document = crate::html! {
            <!DOCTYPE html>
            <html lang="en">
                <head>
                    <meta charset="utf-8">
                    <meta name="viewport" content="width=device-width, initial-scale=1">
                    <meta name="robots" content="noindex">
                    <title>{title}" \u{2013} data"</title>
                    <link rel="stylesheet" href={style}>
                </head>
                <body>
                    <header class="top">
                        <nav aria-label="Data browser">
                            <a href={home}>Data</a>
                            <a href={audit}>Audit log</a>
                        </nav>
                        {match user {
                            Some(user) => { <span class="who">{user}</span> }
                            None => { <span class="who">anonymous</span> }
                        }}
                    </header>
                    {if is_local {
                        <p class="banner">
                            "In development, open to clients on this machine without a login (key "
                            <code>development</code>"); to members of "<code>administrators</code>" from anywhere."
                        </p>
                    }}
                    <main>
                        {if !trail.is_empty() {
                            <p class="trail">
                                {for (address, name) in trail { <a href={address}>{name}</a>" / " }}
                            </p>
                        }}
                        <h1>{heading}</h1>
                        {content}
                    </main>
                </body>
            </html>
        };
        let mut bytes = Vec::new();
        document.write(&mut Writer::new(&mut bytes));
        secured(Response::bytes("text/html; charset=utf-8", bytes)).with_status(status)
    }
}

/// The style sheet.
pub(super) fn style() -> Response {
    secured(Response::bytes("text/css; charset=utf-8", STYLE.as_bytes()))
}

/// Adds the header fields of all responses: no cache keeps them, no other site embeds or reads
/// them.
pub(super) fn secured(response: Response) -> Response {
    response
        .with_header("Cache-Control", "no-store")
        .with_header("Content-Security-Policy", POLICY)
        .with_header("X-Frame-Options", "DENY")
        .with_header("X-Content-Type-Options", "nosniff")
        .with_header("Cross-Origin-Resource-Policy", "same-origin")
        .with_header("Referrer-Policy", "same-origin")
}

/// A number with thin groups of digits.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn groups_digits_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(number).replace('\u{202f}', " "), text);
        }
    }
}
