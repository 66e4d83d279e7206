//! Shows the guide in `docs/guide`; each chapter is rendered once.

use std::sync::OnceLock;

use bine::prelude::*;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html::push_html};

/// A chapter: the name of file and page, title, and Markdown source.
struct Chapter {
    key: &'static str,
    title: &'static str,
    source: &'static str,
    rendered: OnceLock<String>,
}

macro_rules! chapters {
    ($($key:literal: $title:literal,)+) => {
        static CHAPTERS: [Chapter; [$($key),+].len()] = [$(Chapter {
            key: $key,
            title: $title,
            source: include_str!(concat!("../../../../docs/guide/", $key, ".md")),
            rendered: OnceLock::new(),
        },)+];
    };
}

chapters! {
    "start": "Start",
    "tutorial": "Tutorial",
    "pages": "Pages",
    "markup": "Markup",
    "style": "Style sheets",
    "trees": "Trees",
    "tables": "Tables",
    "sessions": "Sessions",
    "rights": "Rights",
    "services": "Services",
    "live": "Live",
    "actions": "Actions",
    "browser": "In the browser",
    "remote": "Calling another server",
    "channels": "Channels",
    "push": "Push for an existing site",
    "testing": "Testing",
    "files": "Files",
    "configuration": "Configuration",
    "tls": "TLS",
    "security": "Security",
    "headers": "Security headers and hosts",
    "logs": "Logs",
    "metrics": "Metrics and health",
    "overload": "Overload",
    "schedulers": "Schedulers",
}

impl Chapter {
    fn rendered(&'static self) -> &'static str {
        self.rendered.get_or_init(|| render(self.source))
    }
}

fn render(source: &str) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(source, Options::ENABLE_TABLES).collect();
    for at in 0..events.len() {
        let anchor = anchor(&events[at + 1..]);
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(anchor.into());
        }
    }
    let mut is_removed = false;
    let events = events.into_iter().filter_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let page = page_address(&dest_url);
            is_removed = page.is_none();
            page.map(|page| Event::Start(Tag::Link { link_type, dest_url: page, title, id }))
        }
        Event::End(TagEnd::Link) if is_removed => {
            is_removed = false;
            None
        }
        other => Some(other),
    });
    let mut rendered = String::with_capacity(source.len() * 3 / 2);
    push_html(&mut rendered, events);
    rendered
}

/// The anchor of a heading, from the events of its text: as sites for source code make it, which
/// the links between chapters expect.
fn anchor(rest: &[Event<'_>]) -> String {
    let mut anchor = String::new();
    for event in rest {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => anchor.push_str(text),
            _ => {}
        }
    }
    let anchor = anchor.to_lowercase();
    let kept =
        anchor.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// The address in the demo of a link in the source. `None`: the link is to a file of the
/// repository that the demo does not serve.
fn page_address<'l>(link: &str) -> Option<CowStr<'l>> {
    if link.contains("://") || link.starts_with('#') {
        return Some(link.to_owned().into());
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let key = file.strip_suffix(".md")?;
    CHAPTERS.iter().find(|chapter| chapter.key == key)?;
    let mark = if fragment.is_empty() { "" } else { "#" };
    Some(format!("/guide/{key}{mark}{fragment}").into())
}

/// Shows the first chapter.
#[page("/guide")]
pub(crate) async fn guide() -> impl Respond {
    chapter_page(0)
}

/// Shows a chapter.
#[page("/guide/{chapter}")]
pub(crate) async fn chapter(chapter: Path<Text>) -> Result<impl Respond, Error> {
    let index = CHAPTERS.iter().position(|known| known.key == chapter.as_str());
    Ok(chapter_page(index.ok_or_else(|| Error::not_found("the guide has no such chapter"))?))
}

fn chapter_page(index: usize) -> impl Respond {
    let shown = &CHAPTERS[index];
    let before = index.checked_sub(1).map(|index| &CHAPTERS[index]);
    let after = CHAPTERS.get(index + 1);
    html! {
        <div class="chapters">
            <nav aria-label="Chapters">
                {for chapter in &CHAPTERS {
                    <a href={format!("/guide/{}", chapter.key)} aria-current={(chapter.key == shown.key).then_some("page")}>
                        {chapter.title}
                    </a>
                }}
            </nav>
            <article>
                {raw(shown.rendered())}
                <nav class="onward" aria-label="Neighbors">
                    {neighbor_link("Before: ", before)}
                    {neighbor_link("Next: ", after)}
                </nav>
            </article>
        </div>
    }
    .with_title(shown.title)
}

fn neighbor_link(words: &'static str, chapter: Option<&'static Chapter>) -> impl Html<Phrasing> {
    html! {
        {match chapter {
            Some(chapter) => { <a href={format!("/guide/{}", chapter.key)}>{words}{chapter.title}</a> }
            None => { <span></span> }
        }}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_of_chapters() {
        let address = |link| page_address(link).map(|address| address.to_string());
        assert_eq!(address("pages.md").as_deref(), Some("/guide/pages"));
        assert_eq!(address("markup.md#components").as_deref(), Some("/guide/markup#components"));
        for other in ["https://example.org/pages.md", "#here"] {
            assert_eq!(address(other).as_deref(), Some(other));
        }
        assert_eq!(address("../../examples/hello.rs"), None);
    }

    #[test]
    fn renders_headings_with_anchors_and_other_files_as_text() {
        let source = "# The `key` of it!\n\nSee [a file](../x.rs) and [a chapter](logs.md).\n";
        assert_eq!(
            render(source),
            "<h1 id=\"the-key-of-it\">The <code>key</code> of it!</h1>\n\
             <p>See a file and <a href=\"/guide/logs\">a chapter</a>.</p>\n"
        );
    }

    #[test]
    fn finds_the_target_of_every_link_between_chapters() {
        let anchors: Vec<(&str, &str)> = CHAPTERS
            .iter()
            .flat_map(|chapter| {
                let ids = chapter.rendered().split("id=\"").skip(1);
                ids.filter_map(|rest| Some((chapter.key, rest.split('"').next()?)))
            })
            .collect();
        for chapter in &CHAPTERS {
            for rest in chapter.rendered().split("href=\"/guide/").skip(1) {
                let target = rest.split('"').next().unwrap_or_default();
                let Some((key, anchor)) = target.split_once('#') else { continue };
                assert!(anchors.contains(&(key, anchor)), "{}: {target}", chapter.key);
            }
        }
    }

    #[test]
    fn begins_every_chapter_with_its_title() {
        for chapter in &CHAPTERS {
            assert!(chapter.source.starts_with("# "), "{}", chapter.key);
            assert!(chapter.rendered().starts_with("<h1 id="), "{}", chapter.key);
        }
    }
}
