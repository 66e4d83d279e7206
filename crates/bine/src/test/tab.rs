//! Decides what a tab does for a test: shows a page, and goes on from it as a visitor would.

use std::time::{Duration, Instant};

use bine_html::tree::{AsSelector as _, Element, Tree};
use bine_http::Method;
use serde_json::Value;

use super::address;
use super::document::{elements, text_of};
use super::exchange::Request;
use super::form::{Chosen, Form, Submission};
use super::page::{Shown, asked, complaints};
use super::told::{self, Wanted};
use super::visitor::Visitor;

/// A page as one visitor sees it.
///
/// A page with live regions is followed, as its script follows it: what changes comes by itself, and what is expected
/// has twenty seconds to come. `count`, `text` and `texts` tell what has come so far.
///
/// Selectors are those of [`Tree::find`]: types, `#id`, `.class`, attributes (`[a]`, `[a=b]`, `^=`, `$=`, `*=`, `~=`),
/// descendants, children and lists. White space in a text is one space, whatever the markup has.
#[derive(Debug)]
pub struct Tab {
    visitor: Visitor,
    page: Shown,
    /// The addresses that [`back`](Self::back) leads to, the latest last.
    before: Vec<String>,
    /// Files that were chosen on this page.
    chosen: Vec<Chosen>,
}

/// How long something that is expected may take to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the page's script would like to have of a form.
const ANSWERS: &str = "application/json, text/html;q=0.5";

impl Visitor {
    /// Opens a page in a tab.
    ///
    /// # Panics
    ///
    /// No answer comes. One that is an error is a page too: see [`Tab::status`].
    #[track_caller]
    pub fn visit(&self, path: &str) -> Tab {
        Tab::opened(self.clone(), path)
    }
}

impl Tab {
    #[track_caller]
    pub(super) fn opened(visitor: Visitor, path: &str) -> Self {
        assert!(path.starts_with('/'), "a path begins with `/`, and {path:?} does not");
        // Nobody has sent who types an address.
        let request = Request::new(Method::Get, path).field("Sec-Fetch-Site", "none");
        match Shown::load(&visitor, request) {
            Ok(page) => Self { visitor, page, before: Vec::new(), chosen: Vec::new() },
            Err(reason) => panic!("{reason}"),
        }
    }

    /// Opens a page in a second tab of the same visitor.
    #[track_caller]
    #[must_use = "the tab that opens is the one that is given back"]
    pub fn open(&self, path: &str) -> Self {
        self.visitor.visit(path)
    }

    /// Goes to another page of the site, as if its address were typed in.
    #[track_caller]
    pub fn visit(&mut self, path: &str) {
        let mut other = self.open(path);
        std::mem::swap(&mut self.page, &mut other.page);
        self.before.push(std::mem::take(&mut other.page.url));
        self.chosen.clear();
    }

    /// Shows the page anew.
    #[track_caller]
    pub fn reload(&mut self) {
        self.page = self.open(&self.page.url).page;
        self.chosen.clear();
    }

    /// Goes to the page that was shown before this one.
    ///
    /// # Panics
    ///
    /// There is none.
    #[track_caller]
    pub fn back(&mut self) {
        match self.before.pop() {
            Some(url) => self.page = self.open(&url).page,
            None => panic!("no page was shown before this one\n\n{}", self.told()),
        }
    }

    /// Fills in a form by the names of its fields and sends it, then shows what the answer leads to. Fields that are
    /// not named keep what they have. It is sent by its first button, or by the one that is named with its value.
    ///
    /// Where the page has this program's script, a form that posts is sent by it, so that an answer of JSON leaves the
    /// page where it is, and one that says what is wrong (RFC 9457) is shown as `<p role="alert">` in the form.
    ///
    /// # Panics
    ///
    /// There is no such form, or several; it has no such field; a browser would not send it.
    #[track_caller]
    pub fn submit<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        selector: &str,
        fields: impl IntoIterator<Item = (N, V)>,
    ) {
        let form = self.only(selector);
        if form.name() != "form" {
            self.fail(&format!("`{selector}` is no form\n\n{}", told::listed(&[form])));
        }
        let mut filled = Form::of(&self.page.tree, form, &self.chosen);
        for (name, value) in fields {
            if let Err(reason) = filled.fill(name.as_ref(), value.as_ref()) {
                self.fail(&reason);
            }
        }
        let submission = filled.button().and_then(|button| filled.submission(button));
        let place = self.place(form);
        self.send(submission, place);
    }

    /// Chooses a file for a field, which the form sends when it is sent.
    ///
    /// # Panics
    ///
    /// There is no such field for files, or several.
    #[track_caller]
    pub fn choose(
        &mut self,
        selector: &str,
        name: &str,
        media_type: &str,
        content: impl Into<Vec<u8>>,
    ) {
        let field = self.only(selector);
        if field.name() != "input" || field.attribute("type") != Some("file") {
            self.fail(&format!("`{selector}` takes no file\n\n{}", told::listed(&[field])));
        }
        let is_multiple = field.attribute("multiple").is_some();
        let field = field.attribute("name").unwrap_or_default().to_owned();
        if !is_multiple {
            self.chosen.retain(|chosen| chosen.field != field);
        }
        let (name, media_type, content) = (name.into(), media_type.into(), content.into());
        self.chosen.push(Chosen { field, name, media_type, content });
    }

    /// Follows a link, or presses a button of a form. What is in one of these stands for it.
    ///
    /// # Panics
    ///
    /// There is nothing of the kind, or several; the link leads away from the site.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let clicked = self.only(selector);
        let is_met = |one: &&Element| {
            let kind = one.attribute("type").unwrap_or_default();
            match one.name() {
                "a" | "area" => one.attribute("href").is_some(),
                "button" => !["button", "reset"].contains(&kind),
                "input" => ["submit", "image"].contains(&kind),
                _ => false,
            }
        };
        let around = |one: &&Element| std::ptr::eq(*one, clicked) || has(one, clicked);
        let Some(met) = elements(self.page.tree.roots()).filter(is_met).filter(around).last()
        else {
            let told = told::listed(&[clicked]);
            self.fail(&format!(
                "`{selector}` is no link, and no button that sends a form\n\n{told}"
            ));
        };
        if let Some(link) = met.attribute("href") {
            // It leads to another place on the same page.
            if !link.trim_start().starts_with('#') {
                let link = link.to_owned();
                self.follow(&link);
            }
            return;
        }
        if met.attribute("disabled").is_some() {
            self.fail(&format!("the button is disabled\n\n{}", told::listed(&[met])));
        }
        let mut forms = elements(self.page.tree.roots()).filter(|form| form.name() == "form");
        let owner = met.attribute("form");
        let form = forms.find(|form| match owner {
            Some(owner) => form.attribute("id") == Some(owner),
            None => has(form, met),
        });
        let Some(form) = form else {
            self.fail(&format!("the button belongs to no form\n\n{}", told::listed(&[met])));
        };
        let submission = Form::of(&self.page.tree, form, &self.chosen).submission(Some(met));
        let place = self.place(form);
        self.send(submission, place);
    }

    /// Panics unless an element that the selector means is as wanted: has a text in it, or one that a function likes.
    ///
    /// ```
    /// # use bine::{App, Page, html, page, test::Site};
    /// # #[page("/")]
    /// # async fn numbers() -> impl Page { html!(<ul><li>17</li> <li>4</li></ul>) }
    /// # let site = Site::new(App::new().page(numbers));
    /// let mut tab = site.visit("/");
    /// tab.expect("ul > li", "17");
    /// tab.expect("li", |text: &str| text.parse() == Ok(4));
    /// ```
    #[allow(clippy::needless_pass_by_value, reason = "`&|text: &str| ..` would be noise in a test")]
    #[track_caller]
    pub fn expect(&mut self, selector: &str, wanted: impl Wanted) {
        let is_there = |tab: &Self| tab.all(selector).any(|one| wanted.holds(&text_of(one)));
        check(selector);
        if !self.comes_to(is_there) {
            self.fail(&told::missing(&self.page.tree, selector, &wanted));
        }
    }

    /// Panics if an element that the selector means is so. It asks for the page once more, to know that the tab shows all
    /// that was done before; so does [`expect_count`](Self::expect_count).
    ///
    /// # Panics
    ///
    /// Also where the tab cannot show that: it no longer follows its page, or is not told what has changed.
    #[allow(clippy::needless_pass_by_value, reason = "as with `expect`")]
    #[track_caller]
    pub fn expect_none(&mut self, selector: &str, unwanted: impl Wanted) {
        let is_unwanted = |one: &&Element| unwanted.holds(&text_of(one));
        check(selector);
        if !self.comes_to_stay(|tab| !tab.all(selector).any(|one| is_unwanted(&one))) {
            let found: Vec<&Element> = self.all(selector).filter(is_unwanted).collect();
            let (what, found) = (unwanted.shown(), told::listed(&found));
            self.fail(&format!("there is a `{selector}` that {what}\n\n{found}"));
        }
    }

    /// Panics unless the selector means so many elements.
    #[track_caller]
    pub fn expect_count(&mut self, selector: &str, count: usize) {
        check(selector);
        if !self.comes_to_stay(|tab| tab.all(selector).count() == count) {
            let found: Vec<&Element> = self.all(selector).collect();
            let told = told::listed(&found);
            self.fail(&format!("there are {} `{selector}`, not {count}\n\n{told}", found.len()));
        }
    }

    /// How many elements the selector means.
    #[track_caller]
    pub fn count(&mut self, selector: &str) -> usize {
        check(selector);
        self.look();
        self.all(selector).count()
    }

    /// What is read in the first element that the selector means.
    ///
    /// # Panics
    ///
    /// There is none.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        check(selector);
        self.look();
        match self.all(selector).next() {
            Some(element) => text_of(element),
            None => self.fail(&told::absent(&self.page.tree, selector)),
        }
    }

    /// What is read in each element that the selector means.
    #[track_caller]
    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        check(selector);
        self.look();
        self.all(selector).map(text_of).collect()
    }

    /// Listens to an event of the program, as a script of the page would, until another page is shown.
    ///
    /// # Panics
    ///
    /// The program has no event of this name.
    #[track_caller]
    pub fn listen(&mut self, event: &str) {
        if !self.page.listen(&self.visitor, event) {
            self.fail(&format!("the event `{event}` cannot be heard"));
        }
    }

    /// What came with the next event of this name, which the tab [listens](Self::listen) to; it has twenty seconds to come.
    #[track_caller]
    pub fn expect_event(&mut self, event: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        self.page.begin();
        loop {
            if let Some(data) = self.page.take_event(event) {
                return data;
            }
            if Instant::now() >= deadline || !self.page.hear(&self.visitor, Some(deadline)) {
                self.fail(&format!("no event `{event}` came"));
            }
        }
    }

    /// The title; empty if the page has none.
    pub fn title(&self) -> String {
        self.all("title").next().map(text_of).unwrap_or_default()
    }

    /// Path and query of the page.
    pub fn url(&self) -> &str {
        &self.page.url
    }

    /// The status of the page, as 200.
    pub const fn status(&self) -> u16 {
        self.page.status
    }

    /// The page itself, for whatever else is to be looked at.
    pub const fn tree(&self) -> &Tree {
        &self.page.tree
    }

    /// Who sees it.
    pub const fn visitor(&self) -> &Visitor {
        &self.visitor
    }

    #[track_caller]
    fn follow(&mut self, link: &str) {
        match address::joined(self.base(), link, self.visitor.site) {
            Ok(target) => self.go(self.request(Method::Get, &target)),
            Err(other) => self.fail(&format!("the link leads away from the site, to {other}")),
        }
    }

    #[track_caller]
    fn send(&mut self, submission: Result<Submission, String>, place: usize) {
        let Submission { method, action, query, content } = match submission {
            Ok(submission) => submission,
            Err(reason) => self.fail(&format!(
                "a browser would not send this form: {reason}\n(what the server says of it: `visitor.fetch(..)`)"
            )),
        };
        let target = match address::joined(self.base(), &action, self.visitor.site) {
            Ok(target) => target,
            Err(other) => self.fail(&format!("the form leads away from the site, to {other}")),
        };
        let Some((kind, body)) = content else {
            self.go(self.request(method, &format!("{}?{query}", address::path(&target))));
            return;
        };
        let mut request = self.request(method, &target).field("Content-Type", kind);
        request.body = body;
        if self.page.has_script {
            self.call(request, place);
        } else {
            self.go(request);
        }
    }

    /// Sends a form as the page's script does.
    #[track_caller]
    fn call(&mut self, request: Request, place: usize) {
        self.page.alert(None);
        let forms = self.all("form").nth(place).map(|form| elements(form.children()));
        let fields = forms.into_iter().flatten();
        let fields = fields.filter(|field| field.attribute("type") != Some("hidden"));
        let names = fields.filter_map(|field| field.attribute("name").map(ToOwned::to_owned));
        let names: Vec<String> = names.collect();
        let mut answer = match asked(&self.visitor, request.field("Accept", ANSWERS)) {
            Ok(answer) => answer,
            Err(reason) => self.fail(&reason),
        };
        let status = answer.1.status();
        if answer.1.media_type() == "text/html" {
            if status >= 400 {
                // A page of an error is shown where the form is, if at all.
                answer.0.clone_from(&self.page.url);
            }
            let page = Shown::of(&self.visitor, answer);
            let first = |selector: &str| page.tree.find(selector).ok().flatten();
            if status < 400 || (status == 422 && first("form").is_some()) {
                self.show(page);
            } else {
                let said = first("p").or_else(|| first("title"));
                let said = said.map_or_else(|| status.to_string(), text_of);
                self.page.alert(Some((place, vec![said])));
            }
        } else if status >= 400 {
            let texts = complaints(&answer.1, |name| names.iter().any(|own| own == name));
            self.page.alert(Some((place, texts)));
        }
    }

    #[track_caller]
    fn go(&mut self, request: Request) {
        match Shown::load(&self.visitor, request) {
            Ok(page) => self.show(page),
            Err(reason) => self.fail(&reason),
        }
    }

    fn show(&mut self, page: Shown) {
        // A browser stays where it is when there is nothing to show.
        if matches!(page.status, 204 | 205) {
            return;
        }
        self.chosen.clear();
        let before = std::mem::replace(&mut self.page, page);
        if before.url != self.page.url {
            self.before.push(before.url);
        }
    }

    /// The number of a form among those of the page.
    fn place(&self, form: &Element) -> usize {
        let mut forms = elements(self.page.tree.roots()).filter(|one| one.name() == "form");
        forms.position(|one| std::ptr::eq(one, form)).unwrap_or_default()
    }

    /// A request that this page leads to.
    fn request(&self, method: Method, target: &str) -> Request {
        let origin = format!("http://{}", self.visitor.site);
        let request = Request::new(method, target)
            .field("Sec-Fetch-Site", "same-origin")
            .field("Referer", format!("{origin}{}", self.page.url));
        if method.is_safe() { request } else { request.field("Origin", origin) }
    }

    /// From where the page's links are read.
    fn base(&self) -> &str {
        let base = self.all("base").find_map(|base| base.attribute("href"));
        base.filter(|base| base.starts_with('/')).unwrap_or(&self.page.url)
    }

    /// Takes what has come so far.
    fn look(&mut self) {
        self.page.begin();
        self.page.catch_up(&self.visitor, Instant::now() + PATIENCE);
    }

    /// Whether it is so, or becomes so while the page follows what happens.
    fn comes_to(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        self.page.begin();
        self.comes_by(Instant::now() + PATIENCE, is_so)
    }

    fn comes_by(&mut self, deadline: Instant, is_so: impl Fn(&Self) -> bool) -> bool {
        self.page.catch_up(&self.visitor, deadline);
        while !is_so(self) {
            // One who has always more to say is not heard to the end.
            if Instant::now() >= deadline || !self.page.hear(&self.visitor, Some(deadline)) {
                return false;
            }
        }
        true
    }

    /// The same, and it is still so when all is shown that was done before: what is not there may be about to come.
    #[track_caller]
    fn comes_to_stay(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        self.page.begin();
        while self.comes_by(deadline, &is_so) {
            if let Err(reason) = self.page.settle(&self.visitor, deadline) {
                self.fail(&reason);
            }
            if is_so(self) {
                return true;
            }
        }
        false
    }

    /// All elements that a selector means which was checked.
    fn all<'t>(&'t self, selector: &str) -> impl Iterator<Item = &'t Element> {
        self.page.tree.find_all(selector).into_iter().flatten()
    }

    /// The one element that a selector means.
    #[track_caller]
    fn only(&self, selector: &str) -> &Element {
        check(selector);
        let found: Vec<&Element> = self.all(selector).collect();
        match found[..] {
            [one] => one,
            [] => self.fail(&told::absent(&self.page.tree, selector)),
            _ => {
                let told = told::listed(&found);
                self.fail(&format!(
                    "there are {} `{selector}`; say which, as by `[name=value]` or what it is in\n\n{told}",
                    found.len()
                ))
            }
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!("{}\n\n{}", what, self.told());
    }

    fn told(&self) -> String {
        let Shown { tree, url, status, .. } = &self.page;
        told::page(tree, url, &format!("status {status}{}", self.page.followed()))
    }
}

/// Panics unless it is a selector.
#[track_caller]
fn check(selector: &str) {
    if let Err(error) = selector.with(|_| ()) {
        panic!("{error}");
    }
}

/// Whether one element is somewhere in another.
fn has(outer: &Element, inner: &Element) -> bool {
    elements(outer.children()).any(|one| std::ptr::eq(one, inner))
}
