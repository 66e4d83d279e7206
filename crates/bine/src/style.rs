//! Decides what a program's one style sheet holds, and under which address it is served.
//!
//! Each `css!` and `css_file!` leaves its part for the linker, wherever in the program and its libraries it stands;
//! here they are joined, once, when the program starts.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;

use bine_http::Head;
use bine_pipeline::{Answer, Bench, Clock, Incoming, Outgoing};

use crate::arguments::Needs;
use crate::methods::Methods;
use crate::respond::{Asked, Response};
use crate::route::{Caller, House, LocalCaller, Place, Route};

/// A part of the program's style sheet, as the macros leave it.
#[derive(Debug)]
pub struct Sheet {
    /// CSS without needless blanks.
    pub text: &'static str,
    /// The module and the line in which it stands.
    pub module: &'static str,
    /// See `module`.
    pub line: u32,
    /// It stands in a file of its own, and is meant for all pages.
    pub is_file: bool,
}

inventory::collect!(Sheet);

/// The style sheet of a program.
#[derive(Debug)]
pub(crate) struct Style {
    text: &'static str,
    path: &'static str,
    /// A strong validator, quotes and all.
    tag: String,
    link: String,
}

impl Style {
    /// All parts that are linked, and those that the program adds. `None`: there are none.
    pub(crate) fn of_program(added: &[Cow<'static, str>]) -> Option<Self> {
        Self::join(inventory::iter::<Sheet>.into_iter().collect(), added)
    }

    /// What is for all pages comes first, so that what is for one part of one may differ; within each, by module and
    /// line, since the linker promises no order. What the program adds comes last: nobody has checked that it ends.
    fn join(mut sheets: Vec<&Sheet>, added: &[Cow<'static, str>]) -> Option<Self> {
        sheets.sort_unstable_by_key(|sheet| (!sheet.is_file, sheet.module, sheet.line, sheet.text));
        // A macro of the program's own may say the same more than once.
        sheets.dedup_by_key(|sheet| (sheet.module, sheet.line, sheet.text));
        let text = sheets.iter().map(|sheet| sheet.text).chain(added.iter().map(|text| &**text));
        let text: String = text.collect();
        if text.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = format!("{:016x}", hasher.finish());
        let path = format!("/_bine/style-{hash}.css");
        let link = format!("<link rel=\"stylesheet\" href=\"{path}\" />");
        // They live as long as the program, which has one style sheet.
        let (text, path) = (text.leak(), path.leak());
        Some(Self { text, path, tag: format!("\"{hash}\""), link })
    }

    /// What belongs into the head of each page.
    pub(crate) fn link(&self) -> &str {
        &self.link
    }

    /// The route that serves it. Its address changes with its content, so it may be kept for ever.
    pub(crate) fn route(self: &Arc<Self>) -> Route {
        let caller = Arc::new(Shared(Arc::clone(self)));
        let (path, needs) = (self.path, Needs::default());
        Route { methods: Methods::GET, path, name: "style", needs, caller }
    }

    /// The tag of a page that names the sheet and would have this one without it; `place` has room for it.
    pub(crate) fn tag_of<'p>(&self, page: &str, place: &'p mut [u8; 64]) -> &'p str {
        let (page, own) = (page.trim_end_matches('"'), self.tag.trim_start_matches('"'));
        let mut length = 0;
        for part in [page, "-", own] {
            place[length..][..part.len()].copy_from_slice(part.as_bytes());
            length += part.len();
        }
        str::from_utf8(&place[..length]).expect("two tags")
    }

    /// The sheet, or that the peer has it (RFC 9110 section 13).
    fn response(&self, head: &Head<'_>) -> Response {
        let response = match bine_files::judge_tag(head, &self.tag) {
            Some(status) => Response::status(status),
            None => Response::bytes("text/css; charset=utf-8", self.text.as_bytes()),
        };
        response
            .with_field("Cache-Control", "public, max-age=31536000, immutable")
            .with_field("ETag", self.tag.clone())
    }
}

struct Shared(Arc<Style>);

struct Local {
    style: Arc<Style>,
    clock: Rc<Clock>,
    house: Arc<House>,
}

impl Caller for Shared {
    fn local(&self, bench: &Bench, place: &Place) -> Box<dyn LocalCaller> {
        Box::new(Local {
            style: Arc::clone(&self.0),
            clock: Rc::clone(&bench.clock),
            house: Arc::clone(&place.house),
        })
    }
}

impl LocalCaller for Local {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let response = self.style.response(&incoming.head);
        response.answer(Asked::by(incoming), &self.clock, &self.house.look, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sheet(text: &'static str, module: &'static str, line: u32, is_file: bool) -> Sheet {
        Sheet { text, module, line, is_file }
    }

    #[test]
    fn parts_are_joined_in_an_order_that_the_linker_cannot_change() {
        let sheets = [
            sheet("d{}", "b", 10, false),
            sheet("c{}", "b", 9, false),
            sheet("b{}", "a", 50, false),
            sheet("a{}", "z", 1, true),
            sheet("c{}", "b", 9, false),
        ];
        let added = [Cow::Borrowed("e{}")];
        let joined = |sheets: Vec<&Sheet>| Style::join(sheets, &added).expect("there are some");
        let style = joined(sheets.iter().collect());
        assert_eq!(style.text, "a{}b{}c{}d{}e{}");
        let turned = joined(sheets.iter().rev().collect());
        assert_eq!((turned.text, turned.path), (style.text, style.path));
    }

    #[test]
    fn other_content_has_another_address_and_none_has_none() {
        let path =
            |text| Style::join(vec![&sheet(text, "a", 1, false)], &[]).map(|style| style.path);
        assert_ne!(path("a{}"), path("b{}"));
        assert_eq!(path(""), None);
        assert!(Style::join(Vec::new(), &[]).is_none());
    }
}
