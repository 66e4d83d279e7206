//! Shows the guide in `docs/guide`; each chapter is rendered once.

use std::sync::OnceLock;

use bine::prelude::*;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html::push_html};

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
}

impl Chapter {
    fn rendered(&'static self) -> &'static str {
        self.rendered.get_or_init(|| render(self.source))
    }
}

fn render(source: &str) -> String {
    let mut rendered = String::with_capacity(source.len() * 3 / 2);
    let options = Options::ENABLE_TABLES;
    push_html(&mut rendered, Parser::new_ext(source, options).map(rewrite_link));
    rendered
}

/// Replaces links to the files of chapters, which serve readers of the source, by links to their
/// pages.
fn rewrite_link(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: page_address(dest_url), title, id })
        }
        other => other,
    }
}

fn page_address(link: CowStr<'_>) -> CowStr<'_> {
    let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
    match file.strip_suffix(".md") {
        Some(key) if CHAPTERS.iter().any(|chapter| chapter.key == key) => {
            let mark = if fragment.is_empty() { "" } else { "#" };
            format!("/guide/{key}{mark}{fragment}").into()
        }
        _ => link,
    }
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
        assert_eq!(&*page_address("pages.md".into()), "/guide/pages");
        assert_eq!(&*page_address("markup.md#components".into()), "/guide/markup#components");
        for other in ["https://example.org/pages.md", "../measurements.md", "#here"] {
            assert_eq!(&*page_address(other.into()), other);
        }
    }

    #[test]
    fn begins_every_chapter_with_its_title() {
        for chapter in &CHAPTERS {
            assert!(chapter.source.starts_with("# "), "{}", chapter.key);
            assert!(chapter.rendered().starts_with("<h1>"), "{}", chapter.key);
        }
    }
}
