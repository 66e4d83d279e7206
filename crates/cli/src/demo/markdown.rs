//! Renders a Markdown file of the repository as HTML: with anchors, colored code and links to the
//! demo's own pages.

use std::fmt::Write as _;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::highlight::{escape, highlight};
use super::sources::link_target;

/// A rendered file.
pub(crate) struct Rendered {
    pub(crate) html: String,
    /// The headings of the second level, in order.
    pub(crate) headings: Vec<Heading>,
}

/// A heading, for the contents of its page.
pub(crate) struct Heading {
    pub(crate) anchor: String,
    pub(crate) text: String,
}

/// Parses a file of the repository, with the extensions that the guide uses.
pub(crate) fn parse(source: &str) -> Parser<'_> {
    Parser::new_ext(source, Options::ENABLE_TABLES)
}

/// Renders a file that is in this folder of the repository.
pub(crate) fn render(source: &str, folder: &str) -> Rendered {
    let events: Vec<Event<'_>> = parse(source).collect();
    let mut anchors = Anchors::default();
    let mut headings = Vec::new();
    let mut out: Vec<Event<'_>> = Vec::with_capacity(events.len() + 64);
    let mut anchor = String::new();
    let mut code: Option<(String, String)> = None;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let text = heading_text(&events[at + 1..]);
                anchor = anchors.of(&text);
                if *level as usize == 2 {
                    headings.push(Heading { anchor: anchor.clone(), text });
                }
                let (classes, attrs) = (classes.clone(), attrs.clone());
                let id = Some(anchor.clone().into());
                out.push(Event::Start(Tag::Heading { level: *level, id, classes, attrs }));
            }
            Event::End(TagEnd::Heading(level)) => {
                if *level as usize > 1 {
                    let link = format!(
                        " <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to this section\">#</a>"
                    );
                    out.push(Event::InlineHtml(link.into()));
                }
                out.push(event.clone());
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let (link_type, title, id) = (*link_type, title.clone(), id.clone());
                let dest_url = link_target(folder, dest_url).into();
                out.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            // The demo has no pictures of the repository: a link leads to them.
            Event::Start(Tag::Image { dest_url, title, id, .. }) => {
                let (link_type, title, id) = (LinkType::Inline, title.clone(), id.clone());
                let dest_url = link_target(folder, dest_url).into();
                out.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            Event::End(TagEnd::Image) => out.push(Event::End(TagEnd::Link)),
            Event::Start(Tag::CodeBlock(kind)) => {
                code = Some((language_of(kind).to_owned(), String::new()));
            }
            Event::Text(text) if code.is_some() => {
                if let Some((_, code)) = &mut code {
                    code.push_str(text);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((language, text)) = code.take() {
                    out.push(Event::Html(code_block(&text, &language).into()));
                }
            }
            // A wide table scrolls in its own box.
            Event::Start(Tag::Table(_)) => {
                out.push(Event::Html("<div class=\"table\" tabindex=\"0\">".into()));
                out.push(event.clone());
            }
            Event::End(TagEnd::Table) => {
                out.push(event.clone());
                out.push(Event::Html("</div>\n".into()));
            }
            other => out.push(other.clone()),
        }
    }
    let mut html = String::with_capacity(source.len() * 2);
    push_html(&mut html, out.into_iter());
    Rendered { html, headings }
}

/// Writes a block of code. Lines that only the documentation tests need are omitted.
pub(crate) fn code_block(code: &str, language: &str) -> String {
    let mut html = "<pre tabindex=\"0\"><code>".to_owned();
    if language == "rust" {
        html.push_str(&highlight(shown_code(code).trim_matches('\n'), language));
    } else {
        html.push_str(&highlight(code, language));
    }
    html.push_str("</code></pre>\n");
    html
}

/// Returns an example without the lines that rustdoc hides.
pub(crate) fn shown_code(code: &str) -> String {
    code.lines().filter(|line| !is_hidden(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Whether rustdoc hides a line of an example.
fn is_hidden(line: &str) -> bool {
    let line = line.trim_start();
    line == "#" || line.starts_with("# ")
}

/// The language of a block, from a fence such as `rust,no_run` or `sh server`.
pub(crate) fn language_of<'k>(kind: &'k CodeBlockKind<'_>) -> &'k str {
    let CodeBlockKind::Fenced(fence) = kind else { return "" };
    match fence.split([',', ' ']).next().unwrap_or_default() {
        "no_run" => "rust",
        other => other,
    }
}

/// The text of a heading, from the events after its start.
pub(crate) fn heading_text(rest: &[Event<'_>]) -> String {
    let mut heading = String::new();
    for event in rest {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => heading.push_str(text),
            _ => {}
        }
    }
    heading
}

/// The anchors of one page, made as sites for source code make them: the links between chapters
/// expect that.
#[derive(Default)]
pub(crate) struct Anchors(Vec<String>);

impl Anchors {
    /// Returns the anchor of the next heading.
    pub(crate) fn of(&mut self, heading: &str) -> String {
        let lower = heading.to_lowercase();
        let kept = lower.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        let anchor: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
        let earlier = self.0.iter().filter(|earlier| **earlier == anchor).count();
        self.0.push(anchor.clone());
        if earlier == 0 { anchor } else { format!("{anchor}-{earlier}") }
    }
}

/// Writes text as HTML, with each occurrence of `words` marked; letters match in either case.
pub(crate) fn mark_words(text: &str, words: &[String]) -> String {
    let mut html = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some((at, length)) = first_word(rest, words) {
        escape(&rest[..at], &mut html);
        html.push_str("<mark>");
        escape(&rest[at..at + length], &mut html);
        let _ = write!(html, "</mark>");
        rest = &rest[at + length..];
    }
    escape(rest, &mut html);
    html
}

/// Finds the first of `words`, which are lowercase ASCII where they have letters of ASCII.
fn first_word(text: &str, words: &[String]) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let found = words.iter().filter_map(|word| Some((lower.find(word.as_str())?, word.len())));
    found.min_by_key(|(at, length)| (*at, usize::MAX - length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, html: &str) {
        assert_eq!(render(source, "docs/guide").html, html);
    }

    #[test]
    fn renders_headings_with_anchors() {
        check("# The `key` of it!", "<h1 id=\"the-key-of-it\">The <code>key</code> of it!</h1>\n");
        let link = |anchor| {
            format!(
                "<a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to this section\">#</a>"
            )
        };
        check(
            "## A b\n\n## A b\n",
            &format!(
                "<h2 id=\"a-b\">A b {}</h2>\n<h2 id=\"a-b-1\">A b {}</h2>\n",
                link("a-b"),
                link("a-b-1")
            ),
        );
        let headings = render("# A\n\n## B\n\n### C\n", "").headings;
        assert_eq!(headings.iter().map(|heading| &*heading.text).collect::<Vec<_>>(), ["B"]);
    }

    #[test]
    fn renders_links_as_addresses_of_the_demo() {
        check("[a](logs.md#a)", "<p><a href=\"/guide/logs#a\">a</a></p>\n");
        let picture = link_target("", "docs/plots/a.svg");
        check("![A plot](../plots/a.svg)", &format!("<p><a href=\"{picture}\">A plot</a></p>\n"));
    }

    #[test]
    fn renders_code_with_colors_and_without_hidden_lines() {
        check(
            "```rust,no_run\n# fn x() {\nlet a = 1;\n# }\n```\n",
            "<pre tabindex=\"0\"><code><span class=\"hk\">let</span> a = <span class=\"hn\">1</span>;</code></pre>\n",
        );
        check("    a <b>\n", "<pre tabindex=\"0\"><code>a &lt;b&gt;\n</code></pre>\n");
        check(
            "```sh\n# a\n```\n",
            "<pre tabindex=\"0\"><code><span class=\"hc\"># a</span>\n</code></pre>\n",
        );
    }

    #[test]
    fn marks_words_in_escaped_text() {
        let words = ["live".to_owned(), "<b".to_owned()];
        assert_eq!(
            mark_words("Live <b> & alive", &words),
            "<mark>Live</mark> <mark>&lt;b</mark>&gt; &amp; a<mark>live</mark>"
        );
    }
}
