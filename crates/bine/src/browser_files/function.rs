//! A function of the browser as the value of attributes.

use std::fmt;
use std::sync::Once;

use bine_html::{Attribute, AttributeValue, Writer};
use bine_log as log;
use serde::Serialize;

use crate::wire;

/// The largest JSON of the data of an element, as for handlers in TSX.
const MAX_DATA: usize = 64 << 10;

/// A value of `data-with` that is no JSON: the script of pages reports it, and calls no function.
const REFUSED: &str = "refused";

/// A function of a file of the browser, which [`browser_file!`](crate::browser_file) declares.
///
/// As text it is a command for the attribute `data-on`, such as `run /_bine/cart-1x.js 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserFunction {
    url: &'static str,
    /// Its place in the default export of the module.
    index: usize,
    /// Whether it decides about an event while the event is dispatched, so that the page loads its
    /// module at once.
    acts_at_once: bool,
    name: &'static str,
}

impl BrowserFunction {
    /// Creates a function. The macro calls it.
    #[doc(hidden)]
    pub const fn new(
        url: &'static str,
        index: usize,
        acts_at_once: bool,
        name: &'static str,
    ) -> Self {
        Self { url, index, acts_at_once, name }
    }

    /// The value of the attribute `data-on` of an element: the browser calls the function when this
    /// event happens, such as `click` or `keydown.Escape`.
    pub const fn on(self, event: &'static str) -> BrowserHandler {
        BrowserHandler { event, function: self }
    }

    /// The value of the attribute `data-with` of the element: the function gets `data` as its second
    /// argument.
    ///
    /// Users can read and change the data in their browsers. It travels as JSON, of which at most 64 KiB
    /// are allowed. With data that is larger, or that JSON cannot hold, the function does not run, and
    /// the log has the reason.
    pub fn data(self, data: &(impl Serialize + ?Sized)) -> BrowserData {
        match json(data) {
            Ok(json) => BrowserData(json),
            Err(reason) => {
                static TOLD: Once = Once::new();
                TOLD.call_once(|| {
                    let Self { name, url, .. } = self;
                    log::error(format_args!(
                        "the data of `{name}` ({url}) cannot be passed: {reason}"
                    ));
                });
                BrowserData(REFUSED.to_owned())
            }
        }
    }
}

/// The data as an array of one value, which is the form of captured values in TSX.
fn json(data: &(impl Serialize + ?Sized)) -> Result<String, String> {
    let json = wire::to_json(&[data]).map_err(|fault| fault.to_string())?;
    if json.len() > MAX_DATA {
        return Err(format!(
            "it has {} bytes as JSON, and {MAX_DATA} are allowed: pass what the function uses",
            json.len()
        ));
    }
    String::from_utf8(json).map_err(|fault| fault.to_string())
}

impl fmt::Display for BrowserFunction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, index, acts_at_once, .. } = self;
        let now = if *acts_at_once { " now" } else { "" };
        write!(to, "run {url} {index}{now}")
    }
}

/// A [function](BrowserFunction) for an event: the value of the attribute `data-on`. As text it can be
/// joined with other handlers: `format_args!("{}; {}", cart::add.on("click"), cart::close.on("blur"))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserHandler {
    event: &'static str,
    function: BrowserFunction,
}

impl fmt::Display for BrowserHandler {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.event, self.function)
    }
}

impl AttributeValue for BrowserHandler {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        format_args!("{self}").write_attribute(attribute, writer);
    }
}

/// The data of a [function](BrowserFunction::data): the value of the attribute `data-with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserData(String);

impl AttributeValue for BrowserData {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.0.write_attribute(attribute, writer);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const ADD: BrowserFunction = BrowserFunction::new("/_bine/cart-1.js", 0, false, "add");
    const DROP: BrowserFunction = BrowserFunction::new("/_bine/cart-1.js", 1, true, "drop");

    #[track_caller]
    fn check(page: impl crate::Page, expected: &str) {
        let mut out = Vec::new();
        page.write(&mut Writer::new(&mut out));
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn names_the_module_and_the_place() {
        check(
            crate::html!(<button data-on={ADD.on("click")}>a</button>),
            "<button data-on=\"click: run /_bine/cart-1.js 0\">a</button>",
        );
        let both = || format!("{}; keydown.Escape: confirm Sure?; {DROP}", DROP.on("drop"));
        check(
            crate::html!(<p data-on={both()}>a</p>),
            "<p data-on=\"drop: run /_bine/cart-1.js 1 now; keydown.Escape: confirm Sure?; run /_bine/cart-1.js 1 now\">a</p>",
        );
    }

    #[test]
    fn escapes_data() {
        let hostile = "\"' onclick=\"alert(1)\"><script>&lt;\u{2028}";
        check(
            crate::html!(<p data-with={ADD.data(hostile)}>a</p>),
            "<p data-with=\"[&quot;\\&quot;&#39; onclick=\\&quot;alert(1)\\&quot;&gt;&lt;script&gt;&amp;lt;\u{2028}&quot;]\">a</p>",
        );
        let data = BTreeMap::from([("id", Some(7)), ("none", None)]);
        check(
            crate::html!(<p data-with={ADD.data(&data)}>a</p>),
            "<p data-with=\"[{&quot;id&quot;:7,&quot;none&quot;:null}]\">a</p>",
        );
    }

    #[test]
    fn rejects_large_data_and_data_that_json_cannot_hold() {
        let text = |length: usize| "a".repeat(length);
        assert_ne!(ADD.data(&text(MAX_DATA - 4)), BrowserData(REFUSED.to_owned()));
        assert_eq!(ADD.data(&text(MAX_DATA - 3)), BrowserData(REFUSED.to_owned()));
        let reason = json(&text(MAX_DATA)).expect_err("too large");
        assert_eq!(
            reason,
            "it has 65540 bytes as JSON, and 65536 are allowed: pass what the function uses"
        );
        let keys = BTreeMap::from([(vec![1], 2)]);
        assert_eq!(ADD.data(&keys), BrowserData(REFUSED.to_owned()));
    }
}
