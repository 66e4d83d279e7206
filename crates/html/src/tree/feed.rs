//! [`Feed`]: Atom and RSS feeds from the articles of a page.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::contents::heading_level;
use super::time::Time;
use super::xhtml::text as xml_text;
use super::{Element, Node, Polyglot, RawMarkup, Subtree, TreeWriter, Walk, value, write};
use crate::Writer;

/// The metadata of a feed. [`Feed::atom`] and [`Feed::rss`] turn it into a writer for trees.
///
/// Each outermost `<article>` becomes an entry. An article without title, URL or time is omitted,
/// because feeds require all three.
///
/// | part of the entry | source in the article |
/// |---|---|
/// | title | text of the first heading |
/// | URL | first link with `rel="bookmark"`, else first link in the heading, else `#id` |
/// | time | `datetime` of the first `<time>` that has one |
/// | content | all nodes except the heading |
///
/// Times look like `2026-11-21` or `2026-11-21T10:30:00+01:00`, and are UTC without an offset.
#[derive(Clone, Default, Debug)]
pub struct Feed {
    /// The title of the feed.
    pub title: Cow<'static, str>,
    /// The author of the feed.
    pub author: Cow<'static, str>,
    /// The subject of the feed, in a sentence.
    pub description: Cow<'static, str>,
    /// The absolute URL of the page with the articles: `https://example.org/news`. Relative URLs in
    /// articles are resolved against it.
    pub page: Cow<'static, str>,
    /// The absolute URL of the feed.
    pub url: Cow<'static, str>,
}

impl Feed {
    /// A writer of Atom (RFC 4287): `application/atom+xml`.
    pub fn atom(self) -> FeedWriter {
        FeedWriter { feed: self, kind: Format::Atom, articles: Vec::new() }
    }

    /// A writer of RSS 2.0: `application/rss+xml`.
    pub fn rss(self) -> FeedWriter {
        FeedWriter { feed: self, kind: Format::Rss, articles: Vec::new() }
    }
}

/// Writes the articles of a tree as a feed; created by [`Feed::atom`] and [`Feed::rss`].
#[derive(Clone, Debug)]
pub struct FeedWriter {
    feed: Feed,
    kind: Format,
    /// The articles so far. They are kept because a feed begins with the time of its latest entry.
    articles: Vec<Article>,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Atom,
    Rss,
}

#[derive(Clone, Debug)]
struct Article {
    title: String,
    url: String,
    time: Time,
    /// Markup.
    content: String,
}

impl TreeWriter for FeedWriter {
    fn open(&mut self, element: &Element, _to: &mut Writer<'_>) -> Subtree {
        if !element.name().eq_ignore_ascii_case("article") {
            return Subtree::Visit;
        }
        self.articles.extend(Article::of(element, &self.feed.page));
        Subtree::Skip
    }

    fn close(&mut self, _element: &Element, _to: &mut Writer<'_>) {}

    fn text(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn raw(&mut self, _markup: &RawMarkup, _to: &mut Writer<'_>) {}

    fn comment(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn doctype(&mut self, _to: &mut Writer<'_>) {}

    fn end(&mut self, to: &mut Writer<'_>) {
        to.constant("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
        match self.kind {
            Format::Atom => self.write_atom(to),
            Format::Rss => self.write_rss(to),
        }
    }
}

impl FeedWriter {
    fn write_atom(&self, to: &mut Writer<'_>) {
        let feed = &self.feed;
        to.constant("<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"");
        xml_text(&feed.page, to);
        to.constant("\">\n");
        write_element("id", &feed.url, to);
        write_element("title", &feed.title, to);
        if !feed.description.is_empty() {
            write_element("subtitle", &feed.description, to);
        }
        let latest = self.articles.iter().map(|article| article.time).max_by_key(Time::second);
        write_element("updated", &latest.unwrap_or_default().rfc3339(), to);
        to.constant("<author>");
        write_element("name", &feed.author, to);
        to.constant("</author>\n");
        link(" rel=\"self\"", &feed.url, to);
        link("", &feed.page, to);
        for article in &self.articles {
            to.constant("<entry>\n");
            write_element("id", &article.url, to);
            write_element("title", &article.title, to);
            write_element("updated", &article.time.rfc3339(), to);
            link("", &article.url, to);
            to.constant("<content type=\"html\">");
            xml_text(&article.content, to);
            to.constant("</content>\n</entry>\n");
        }
        to.constant("</feed>\n");
    }

    fn write_rss(&self, to: &mut Writer<'_>) {
        let feed = &self.feed;
        to.constant("<rss version=\"2.0\"><channel>\n");
        write_element("title", &feed.title, to);
        write_element("link", &feed.page, to);
        // RSS requires a description.
        let is_described = !feed.description.is_empty();
        write_element(
            "description",
            if is_described { &feed.description } else { &feed.title },
            to,
        );
        for article in &self.articles {
            to.constant("<item>\n");
            write_element("title", &article.title, to);
            write_element("link", &article.url, to);
            write_element("guid", &article.url, to);
            write_element("pubDate", &article.time.rfc822(), to);
            write_element("description", &article.content, to);
            to.constant("</item>\n");
        }
        to.constant("</channel></rss>\n");
    }
}

fn write_element(name: &'static str, text: &str, to: &mut Writer<'_>) {
    to.constant("<");
    to.constant(name);
    to.constant(">");
    xml_text(text, to);
    to.constant("</");
    to.constant(name);
    to.constant(">\n");
}

fn link(relation: &'static str, address: &str, to: &mut Writer<'_>) {
    to.constant("<link");
    to.constant(relation);
    to.constant(" href=\"");
    xml_text(address, to);
    to.constant("\" />\n");
}

impl Article {
    fn of(article: &Element, page: &str) -> Option<Self> {
        let heading =
            elements(article.children()).find(|one| heading_level(one.name()).is_some())?;
        let marked = elements(article.children()).find(|link| {
            let relations = link.attribute("rel").unwrap_or_default();
            link.name() == "a" && relations.split_ascii_whitespace().any(|one| one == "bookmark")
        });
        let linked = || elements(heading.children()).find(|link| link.name() == "a");
        let url = match marked.or_else(linked).and_then(|link| link.attribute("href")) {
            Some(address) => resolve(page, address),
            None => resolve(page, &["#", article.attribute("id")?].concat()),
        };
        let mut times = elements(article.children()).filter(|time| time.name() == "time");
        let time = times.find_map(|time| Time::read(time.attribute("datetime")?))?;
        let content = value::written(|writer| {
            write::write(article.children(), &mut Except(heading), writer);
        });
        Some(Self { title: heading.text().trim().into(), url, time, content })
    }
}

fn elements(nodes: &[Node]) -> impl Iterator<Item = &Element> {
    Walk::new(nodes).filter_map(Node::as_element)
}

/// Omits one element.
struct Except<'e>(&'e Element);

impl TreeWriter for Except<'_> {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        if element.is(self.0) { Subtree::Skip } else { Polyglot.open(element, to) }
    }
}

/// Resolves a URL against the page's (RFC 3986 section 5.2, without removal of dot segments).
fn resolve(page: &str, address: &str) -> String {
    let ends_a_part = |from: &str| from.find(['/', '?', '#']).unwrap_or(from.len());
    if address[..ends_a_part(address)].contains(':') {
        return address.into();
    }
    let scheme = page.find("//").unwrap_or(0);
    let host = page.find("//").map_or(0, |scheme| scheme + "//".len());
    let path = host + ends_a_part(&page[host..]);
    let end = |of: &[char]| page[path..].find(of).map_or(page.len(), |end| path + end);
    let base = match address.as_bytes() {
        [b'/', b'/', ..] => &page[..scheme],
        [b'/', ..] => &page[..path],
        [b'?', ..] => &page[..end(&['?', '#'])],
        [b'#', ..] | [] => &page[..end(&['#'])],
        _ => {
            let file = &page[..end(&['?', '#'])];
            match file[path..].rfind('/') {
                Some(slash) => &file[..=path + slash],
                None => return [file, "/", address].concat(),
            }
        }
    };
    [base, address].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_relative_urls() {
        for (page, address, expected) in [
            ("https://a.example/b/c?d#e", "x", "https://a.example/b/x"),
            ("https://a.example/b/c?d#e", "/x", "https://a.example/x"),
            ("https://a.example/b/c?d#e", "//x/y", "https://x/y"),
            ("https://a.example/b/c?d#e", "?x", "https://a.example/b/c?x"),
            ("https://a.example/b/c?d#e", "#x", "https://a.example/b/c?d#x"),
            ("https://a.example/b/c?d#e", "", "https://a.example/b/c?d"),
            ("https://a.example/b", "http://x/", "http://x/"),
            ("https://a.example", "x", "https://a.example/x"),
            ("https://a.example", "/x", "https://a.example/x"),
            ("", "x", "/x"),
            ("\u{e4}", "x", "\u{e4}/x"),
        ] {
            assert_eq!(resolve(page, address), expected, "{page} {address}");
        }
    }
}
