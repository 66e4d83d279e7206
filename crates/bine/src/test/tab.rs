//! A browser tab for tests: shows a page and follows its links and forms.

use std::time::{Duration, Instant};

use bine_html::tree::{AsSelector as _, Element, Tree};
use bine_http::Method;
use serde_json::Value;

use super::address;
use super::client::Client;
use super::document::{elements, text_of};
use super::exchange::TestRequest;
use super::failure::{self, Expectation};
use super::form::{ChosenFile, PageForm, Submission};
use super::page::{LoadedPage, problem_texts, request_page};

/// A page as one client sees it.
///
/// The tab follows a page with live regions as the page's script does: changes arrive by
/// themselves, and each expectation has twenty seconds to come true. `click`, `submit`, `choose` and
/// `text` wait for their element in the same way. `count` and `texts` see the changes that have
/// arrived.
///
/// Selectors are those of [`Tree::find`]: types, `#id`, `.class`, attributes (`[a]`, `[a=b]`, `^=`,
/// `$=`, `*=`, `~=`), positions (`:first-child`, `:last-child`, `:nth-child(2n+1)`,
/// `:nth-last-child(..)`), descendants, children and lists. White space in a text becomes a single
/// space.
#[derive(Debug)]
pub struct Tab {
    client: Client,
    page: LoadedPage,
    /// Addresses that [`back`](Self::back) returns to, the latest last.
    history: Vec<String>,
    /// Files chosen on this page.
    chosen: Vec<ChosenFile>,
}

/// Time limit for an expectation.
const PATIENCE: Duration = Duration::from_secs(20);
/// The `Accept` field of the page's script when it submits a form.
const ACCEPT: &str = "application/json, text/html;q=0.5";

impl Client {
    /// Opens a page in a tab.
    ///
    /// # Panics
    ///
    /// No response arrives. An error response is a page too: see [`Tab::status`].
    #[track_caller]
    pub fn visit(&self, path: &str) -> Tab {
        Tab::opened(self.clone(), path)
    }
}

impl Tab {
    #[track_caller]
    pub(super) fn opened(client: Client, path: &str) -> Self {
        assert!(path.starts_with('/'), "a path begins with `/`, and {path:?} does not");
        // A typed address has no initiator.
        let request = TestRequest::new(Method::Get, path).header("Sec-Fetch-Site", "none");
        match LoadedPage::load(&client, request) {
            Ok(page) => Self { client, page, history: Vec::new(), chosen: Vec::new() },
            Err(reason) => panic!("{reason}"),
        }
    }

    /// Opens a page in a second tab of the same client.
    #[track_caller]
    #[must_use = "the tab that opens is the one that is given back"]
    pub fn open(&self, path: &str) -> Self {
        self.client.visit(path)
    }

    /// Loads a page of the site, as if its address were typed in.
    #[track_caller]
    pub fn visit(&mut self, path: &str) {
        let mut other = self.open(path);
        std::mem::swap(&mut self.page, &mut other.page);
        self.history.push(std::mem::take(&mut other.page.url));
        self.chosen.clear();
    }

    /// Loads the page again.
    #[track_caller]
    pub fn reload(&mut self) {
        self.page = self.open(&self.page.url).page;
        self.chosen.clear();
    }

    /// Returns to the previous page.
    ///
    /// # Panics
    ///
    /// There is no previous page.
    #[track_caller]
    pub fn back(&mut self) {
        match self.history.pop() {
            Some(url) => self.page = self.open(&url).page,
            None => panic!("no page was shown before this one\n\n{}", self.description()),
        }
    }

    /// Fills in a form by field names, submits it, and shows the response. Other fields keep their
    /// values. The first button submits the form, or the button that is named with its value. Waits
    /// for the form as [`expect`](Self::expect) does.
    ///
    /// If the page has the framework's script, that script submits forms with the method POST: a
    /// JSON response leaves the page in place, and a problem document (RFC 9457) appears as `<p
    /// role="alert">` in the form.
    ///
    /// # Panics
    ///
    /// The selector matches no form or several, the form has no such field, or a browser would not
    /// submit it.
    #[track_caller]
    pub fn submit<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        selector: &str,
        fields: impl IntoIterator<Item = (N, V)>,
    ) {
        self.await_one(selector);
        let form = self.find_one(selector);
        if form.name() != "form" {
            self.fail(&format!("`{selector}` is no form\n\n{}", failure::listed(&[form])));
        }
        let mut filled = PageForm::of(&self.page.tree, form, &self.chosen);
        for (name, value) in fields {
            if let Err(reason) = filled.fill(name.as_ref(), value.as_ref()) {
                self.fail(&reason);
            }
        }
        let submission = filled.button().and_then(|button| filled.submission(button));
        let place = self.form_index(form);
        self.send(submission, place);
    }

    /// Chooses a file for a file field, for which it waits as [`expect`](Self::expect) does. The form
    /// sends the file on submission.
    ///
    /// # Panics
    ///
    /// The selector does not match exactly one file field.
    #[track_caller]
    pub fn choose(
        &mut self,
        selector: &str,
        name: &str,
        media_type: &str,
        content: impl Into<Vec<u8>>,
    ) {
        self.await_one(selector);
        let field = self.find_one(selector);
        if field.name() != "input" || field.attribute("type") != Some("file") {
            self.fail(&format!("`{selector}` takes no file\n\n{}", failure::listed(&[field])));
        }
        let is_multiple = field.attribute("multiple").is_some();
        let field = field.attribute("name").unwrap_or_default().to_owned();
        if !is_multiple {
            self.chosen.retain(|chosen| chosen.field != field);
        }
        let (name, media_type, content) = (name.into(), media_type.into(), content.into());
        self.chosen.push(ChosenFile { field, name, media_type, content });
    }

    /// Follows a link or presses a submit button. The selector may name an element inside the link
    /// or button. Waits as [`expect`](Self::expect) does until it matches one element.
    ///
    /// # Panics
    ///
    /// The selector does not match exactly one such element, or the link leads to another site.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        self.await_one(selector);
        let clicked = self.find_one(selector);
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
            let told = failure::listed(&[clicked]);
            self.fail(&format!(
                "`{selector}` is no link, and no button that sends a form\n\n{told}"
            ));
        };
        if let Some(link) = met.attribute("href") {
            // The link refers to a position on the same page.
            if !link.trim_start().starts_with('#') {
                let link = link.to_owned();
                self.follow(&link);
            }
            return;
        }
        if met.attribute("disabled").is_some() {
            self.fail(&format!("the button is disabled\n\n{}", failure::listed(&[met])));
        }
        let mut forms = elements(self.page.tree.roots()).filter(|form| form.name() == "form");
        let owner = met.attribute("form");
        let form = forms.find(|form| match owner {
            Some(owner) => form.attribute("id") == Some(owner),
            None => has(form, met),
        });
        let Some(form) = form else {
            self.fail(&format!("the button belongs to no form\n\n{}", failure::listed(&[met])));
        };
        let submission = PageForm::of(&self.page.tree, form, &self.chosen).submission(Some(met));
        let place = self.form_index(form);
        self.send(submission, place);
    }

    /// Panics unless some element of the selector meets the condition: contains a text, or
    /// satisfies a function.
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
    pub fn expect(&mut self, selector: &str, wanted: impl Expectation) {
        let is_there = |tab: &Self| tab.all(selector).any(|one| wanted.holds(&text_of(one)));
        check(selector);
        if !self.wait_until(is_there) {
            self.fail(&failure::missing(&self.page.tree, selector, &wanted));
        }
    }

    /// Panics if an element of the selector meets the condition. The tab requests the page once
    /// more to know that it shows everything done before; [`expect_count`](Self::expect_count) does
    /// so too.
    ///
    /// # Panics
    ///
    /// Also if the tab cannot know that: it no longer follows its page, or receives no changes.
    #[allow(clippy::needless_pass_by_value, reason = "as with `expect`")]
    #[track_caller]
    pub fn expect_none(&mut self, selector: &str, unwanted: impl Expectation) {
        let is_unwanted = |one: &&Element| unwanted.holds(&text_of(one));
        check(selector);
        if !self.wait_until_settled(|tab| !tab.all(selector).any(|one| is_unwanted(&one))) {
            let found: Vec<&Element> = self.all(selector).filter(is_unwanted).collect();
            let (what, found) = (unwanted.shown(), failure::listed(&found));
            self.fail(&format!("there is a `{selector}` that {what}\n\n{found}"));
        }
    }

    /// Panics unless the selector matches this number of elements.
    #[track_caller]
    pub fn expect_count(&mut self, selector: &str, count: usize) {
        check(selector);
        if !self.wait_until_settled(|tab| tab.all(selector).count() == count) {
            let found: Vec<&Element> = self.all(selector).collect();
            let told = failure::listed(&found);
            self.fail(&format!("there are {} `{selector}`, not {count}\n\n{told}", found.len()));
        }
    }

    /// Returns the number of elements that match the selector.
    #[track_caller]
    pub fn count(&mut self, selector: &str) -> usize {
        check(selector);
        self.catch_up();
        self.all(selector).count()
    }

    /// Returns the text of the first element that matches the selector. Waits for the element as
    /// [`expect`](Self::expect) does.
    ///
    /// # Panics
    ///
    /// No element matches.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        check(selector);
        self.wait_until(|tab| tab.all(selector).next().is_some());
        match self.all(selector).next() {
            Some(element) => text_of(element),
            None => self.fail(&failure::absent(&self.page.tree, selector)),
        }
    }

    /// Returns the text of each element that matches the selector.
    #[track_caller]
    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        check(selector);
        self.catch_up();
        self.all(selector).map(text_of).collect()
    }

    /// Listens to an event of the program, as a script of the page would, until another page is
    /// shown.
    ///
    /// # Panics
    ///
    /// The program has no event of this name.
    #[track_caller]
    pub fn listen(&mut self, event: &str) {
        if !self.page.listen(&self.client, event) {
            self.fail(&format!("the event `{event}` cannot be heard"));
        }
    }

    /// Waits up to twenty seconds for the next event with this name and returns its data. The tab
    /// must [listen](Self::listen) to it.
    #[track_caller]
    pub fn expect_event(&mut self, event: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        self.page.begin_expectation();
        loop {
            if let Some(data) = self.page.take_event(event) {
                return data;
            }
            if Instant::now() >= deadline || !self.page.receive(&self.client, Some(deadline)) {
                self.fail(&format!("no event `{event}` came"));
            }
        }
    }

    /// Returns the title, or an empty text if the page has no title.
    pub fn title(&self) -> String {
        self.all("title").next().map(text_of).unwrap_or_default()
    }

    /// Returns path and query of the page.
    pub fn url(&self) -> &str {
        &self.page.url
    }

    /// Returns the status of the page, such as 200.
    pub const fn status(&self) -> u16 {
        self.page.status
    }

    /// Returns the parsed page, for further checks.
    pub const fn tree(&self) -> &Tree {
        &self.page.tree
    }

    /// Returns the client of this tab.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    #[track_caller]
    fn follow(&mut self, link: &str) {
        match address::joined(self.base(), link, self.client.site) {
            Ok(target) => self.navigate(self.request(Method::Get, &target)),
            Err(other) => self.fail(&format!("the link leads away from the site, to {other}")),
        }
    }

    #[track_caller]
    fn send(&mut self, submission: Result<Submission, String>, place: usize) {
        let Submission { method, action, query, content } = match submission {
            Ok(submission) => submission,
            Err(reason) => self.fail(&format!(
                "a browser would not send this form: {reason}\n(what the server says of it: `client.request(..)`)"
            )),
        };
        let target = match address::joined(self.base(), &action, self.client.site) {
            Ok(target) => target,
            Err(other) => self.fail(&format!("the form leads away from the site, to {other}")),
        };
        let Some((kind, body)) = content else {
            self.navigate(self.request(method, &format!("{}?{query}", address::path(&target))));
            return;
        };
        let mut request = self.request(method, &target).header("Content-Type", kind);
        request.body = body;
        if self.page.has_script {
            self.submit_by_script(request, place);
        } else {
            self.navigate(request);
        }
    }

    /// Submits a form as the page's script does.
    #[track_caller]
    fn submit_by_script(&mut self, request: TestRequest, place: usize) {
        self.page.alert(None);
        let forms = self.all("form").nth(place).map(|form| elements(form.children()));
        let fields = forms.into_iter().flatten();
        let fields = fields.filter(|field| field.attribute("type") != Some("hidden"));
        let names = fields.filter_map(|field| field.attribute("name").map(ToOwned::to_owned));
        let names: Vec<String> = names.collect();
        let mut answer = match request_page(&self.client, request.header("Accept", ACCEPT)) {
            Ok(answer) => answer,
            Err(reason) => self.fail(&reason),
        };
        let status = answer.1.status();
        if answer.1.media_type() == "text/html" {
            if status >= 400 {
                // The script shows an error page inside the form, at the current address.
                answer.0.clone_from(&self.page.url);
            }
            let page = LoadedPage::of(&self.client, answer);
            let first = |selector: &str| page.tree.find(selector).ok().flatten();
            if status < 400 || (status == 422 && first("form").is_some()) {
                self.show(page);
            } else {
                let said = first("p").or_else(|| first("title"));
                let said = said.map_or_else(|| status.to_string(), text_of);
                self.page.alert(Some((place, vec![said])));
            }
        } else if status >= 400 {
            let texts = problem_texts(&answer.1, |name| names.iter().any(|own| own == name));
            self.page.alert(Some((place, texts)));
        }
    }

    #[track_caller]
    fn navigate(&mut self, request: TestRequest) {
        match LoadedPage::load(&self.client, request) {
            Ok(page) => self.show(page),
            Err(reason) => self.fail(&reason),
        }
    }

    fn show(&mut self, page: LoadedPage) {
        // A browser keeps its page when the response has no content.
        if matches!(page.status, 204 | 205) {
            return;
        }
        self.chosen.clear();
        let before = std::mem::replace(&mut self.page, page);
        if before.url != self.page.url {
            self.history.push(before.url);
        }
    }

    /// Returns the index of a form among those of the page.
    fn form_index(&self, form: &Element) -> usize {
        let mut forms = elements(self.page.tree.roots()).filter(|one| one.name() == "form");
        forms.position(|one| std::ptr::eq(one, form)).unwrap_or_default()
    }

    /// Builds a request that this page initiates.
    fn request(&self, method: Method, target: &str) -> TestRequest {
        let origin = format!("http://{}", self.client.site);
        let request = TestRequest::new(method, target)
            .header("Sec-Fetch-Site", "same-origin")
            .header("Referer", format!("{origin}{}", self.page.url));
        if method.is_safe() { request } else { request.header("Origin", origin) }
    }

    /// Returns the base address of the page's links.
    fn base(&self) -> &str {
        let base = self.all("base").find_map(|base| base.attribute("href"));
        base.filter(|base| base.starts_with('/')).unwrap_or(&self.page.url)
    }

    /// Applies the messages that have arrived.
    fn catch_up(&mut self) {
        self.page.begin_expectation();
        self.page.catch_up(&self.client, Instant::now() + PATIENCE);
    }

    /// Waits until the condition holds.
    fn wait_until(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        self.page.begin_expectation();
        self.wait_until_deadline(Instant::now() + PATIENCE, is_so)
    }

    fn wait_until_deadline(&mut self, deadline: Instant, is_so: impl Fn(&Self) -> bool) -> bool {
        self.page.catch_up(&self.client, deadline);
        while !is_so(self) {
            // A stream with endless messages must not extend the deadline.
            if Instant::now() >= deadline || !self.page.receive(&self.client, Some(deadline)) {
                return false;
            }
        }
        true
    }

    /// Waits until the condition holds and still does once the tab shows everything done before: an
    /// element that is absent may be about to arrive.
    #[track_caller]
    fn wait_until_settled(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        self.page.begin_expectation();
        while self.wait_until_deadline(deadline, &is_so) {
            if let Err(reason) = self.page.settle(&self.client, deadline) {
                self.fail(&reason);
            }
            if is_so(self) {
                return true;
            }
        }
        false
    }

    /// Returns all elements of a valid selector.
    fn all<'t>(&'t self, selector: &str) -> impl Iterator<Item = &'t Element> {
        self.page.tree.find_all(selector).into_iter().flatten()
    }

    /// Waits until the selector matches exactly one element, or until the deadline.
    #[track_caller]
    fn await_one(&mut self, selector: &str) {
        check(selector);
        self.wait_until(|tab| tab.all(selector).count() == 1);
    }

    /// Returns the only element of a valid selector, or panics.
    #[track_caller]
    fn find_one(&self, selector: &str) -> &Element {
        let found: Vec<&Element> = self.all(selector).collect();
        match found[..] {
            [one] => one,
            [] => self.fail(&failure::absent(&self.page.tree, selector)),
            _ => {
                let told = failure::listed(&found);
                self.fail(&format!(
                    "there are {} `{selector}`; say which, as by `[name=value]` or what it is in\n\n{told}",
                    found.len()
                ))
            }
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!("{}\n\n{}", what, self.description());
    }

    fn description(&self) -> String {
        let LoadedPage { tree, url, status, .. } = &self.page;
        failure::page(tree, url, &format!("status {status}{}", self.page.followed()))
    }
}

/// Panics if the selector is invalid.
#[track_caller]
fn check(selector: &str) {
    if let Err(error) = selector.with(|_| ()) {
        panic!("{error}");
    }
}

/// Whether an element contains `inner`.
fn has(outer: &Element, inner: &Element) -> bool {
    elements(outer.children()).any(|one| std::ptr::eq(one, inner))
}
