//! Shows the guide in `docs/guide`; each chapter is rendered once.

use std::sync::OnceLock;

use bine::prelude::*;

use super::address::Visited;
use super::markdown::{Rendered, code_block, render};
use super::sources::{GUIDE, SOURCES, Source, source_at};

browser_file!(mod search = "../../demo/search.browser.ts");

/// The page of results.
const SEARCH: &str = "/guide/search";

/// A chapter: the name of file and page, title, and Markdown source.
pub(crate) struct Chapter {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: &'static str,
    rendered: OnceLock<Rendered>,
}

/// A part of the guide.
struct Part {
    title: &'static str,
    /// The number of its chapters.
    length: usize,
}

macro_rules! guide {
    ($($part:literal { $($key:literal: $title:literal,)+ })+) => {
        /// All chapters, in the order of the guide's contents.
        pub(crate) static CHAPTERS: [Chapter; [$($($key),+),+].len()] = [$($(Chapter {
            key: $key,
            title: $title,
            source: include_str!(concat!("../../../../docs/guide/", $key, ".md")),
            rendered: OnceLock::new(),
        },)+)+];

        const PARTS: [Part; [$($part),+].len()] =
            [$(Part { title: $part, length: [$($key),+].len() },)+];
    };
}

guide! {
    "Start" {
        "start": "Start",
        "tutorial": "Tutorial",
        "scripts": "Applications in TSX",
    }
    "How to write a program" {
        "pages": "Pages",
        "markup": "Markup",
        "style": "Style sheets",
        "trees": "Trees",
        "scripts-trees": "Trees in TSX",
        "tables": "Tables",
        "scripts-tables": "Tables in TSX",
        "scripts-browser": "Handlers in TSX",
        "scripts-forms": "Forms, files and other servers in TSX",
        "scripts-start": "The start script",
        "scripts-channels": "Channels, sessions and events in TSX",
        "data-browser": "Data browser",
        "sessions": "Sessions",
        "accounts": "Accounts",
        "api-tokens": "API tokens",
        "rights": "Rights",
        "services": "Services",
        "live": "Live",
        "actions": "Actions",
        "browser": "In the browser",
        "remote": "Calling another server",
        "testing": "Testing",
    }
    "How to send messages to clients" {
        "channels": "Channels",
        "push": "Push for an existing site",
    }
    "How to operate a server" {
        "files": "Files",
        "compression": "Compressed responses",
        "configuration": "Configuration",
        "tls": "TLS",
        "headers": "Security headers and hosts",
        "logs": "Logs",
        "proxy": "Reverse proxy and balancer",
        "cluster": "Several machines",
        "metrics": "Metrics and health",
        "profile": "Profiles",
    }
    "Reference and internals" {
        "security": "Security",
        "overload": "Overload",
        "schedulers": "Schedulers",
    }
}

/// The contents of the guide.
const CONTENTS: &str = include_str!("../../../../docs/guide/README.md");

impl Chapter {
    fn rendered(&'static self) -> &'static Rendered {
        self.rendered.get_or_init(|| render(self.source, GUIDE))
    }
}

/// Shows the contents of the guide.
#[page("/guide")]
pub(crate) fn contents() -> impl Respond {
    static RENDERED: OnceLock<Rendered> = OnceLock::new();
    let rendered = RENDERED.get_or_init(|| render(CONTENTS, GUIDE));
    guide_page(
        None,
        String::new(),
        html!(<article class="contents">{raw(&*rendered.html)}</article>),
    )
    .with_title("The guide")
}

/// Shows a chapter. The pages of the guide run on a worker, because the first request for one
/// renders it.
#[page("/guide/{chapter}")]
pub(crate) fn chapter(chapter: Path<Text>, request: Request) -> Result<impl Respond, Error> {
    let index = CHAPTERS.iter().position(|known| known.key == chapter.as_str());
    let index = index.ok_or_else(|| Error::not_found("the guide has no such chapter"))?;
    let shown = &CHAPTERS[index];
    let Rendered { html, headings } = shown.rendered();
    let html = Visited::by(&request).replace_in(html);
    let (before, after) = (index.checked_sub(1), Some(index + 1));
    let article = html! {
        <article>
            {raw(html)}
            <nav class="onward" aria-label="Neighbors">
                {neighbor_link("Previous", "prev", before)}
                {neighbor_link("Next", "next", after)}
            </nav>
        </article>
        <nav class="headings" aria-labelledby="headings-of-page">
            <h2 id="headings-of-page">"On this page"</h2>
            {for heading in headings { <a href={format!("#{}", heading.anchor)}>{&heading.text}</a> }}
        </nav>
    };
    Ok(guide_page(Some(shown.key), String::new(), article).with_title(shown.title))
}

/// Writes a page of the guide: the chapters and the search next to its content.
pub(crate) fn guide_page(
    current: Option<&'static str>,
    query: String,
    content: impl Html<Flow>,
) -> impl Html<Flow> {
    let mut rest = &CHAPTERS[..];
    let parts = PARTS.map(|Part { title, length }| {
        let (own, others) = rest.split_at(length);
        rest = others;
        (title, own)
    });
    html! {
        <div class="guide">
            <div class="side">
                <form class="search" role="search" action={SEARCH}>
                    <input type="search" name="q" value={query} aria-label="Search the guide" placeholder="Search"
                        maxlength="100" autocomplete="off"
                        data-on={search::suggest.on("input")} data-with={search::suggest.data(SEARCH)}>
                    <button type="submit">"Find"</button>
                </form>
                <nav id="chapters" aria-label="Chapters">
                    <a href="/guide" aria-current={current.is_none().then_some("page")}>"Contents"</a>
                    {for (title, chapters) in parts {
                        <p>{title}</p>
                        {for chapter in chapters {
                            <a href={format!("/guide/{}", chapter.key)} aria-current={(current == Some(chapter.key)).then_some("page")}>
                                {chapter.title}
                            </a>
                        }}
                    }}
                </nav>
            </div>
            <div class="shown">
                <p class="jump"><a href="#chapters">"All chapters"</a></p>
                {content}
            </div>
        </div>
    }
}

fn neighbor_link(
    words: &'static str,
    relation: &'static str,
    index: Option<usize>,
) -> impl Html<Phrasing> {
    let chapter = index.and_then(|index| CHAPTERS.get(index));
    html! {
        {match chapter {
            Some(chapter) => {
                <a href={format!("/guide/{}", chapter.key)} rel={relation}><small>{words}</small>{chapter.title}</a>
            }
            None => { <span></span> }
        }}
    }
}

/// Lists the files that the guide refers to.
#[page("/source")]
pub(crate) async fn sources() -> impl Respond {
    html! {
        <h1>"Examples and sources"</h1>
        <p class="lead">
            "Each example is one program: "<code>"cargo run --release --example board"</code>" runs it in a checkout."
        </p>
        <ul class="files">
            {for source in &SOURCES {
                <li><a href={format!("/source/{}", source.path)}>{source.path}</a><span>{first_line(source)}</span></li>
            }}
        </ul>
    }
    .with_title("Sources")
}

/// The description in a file, or an empty text.
fn first_line(source: &Source) -> &'static str {
    let line = source.text.lines().next().unwrap_or_default();
    let line = ["//! ", "# ", "\"\"\""].iter().find_map(|start| line.strip_prefix(start));
    line.unwrap_or_default().trim_end_matches('"')
}

/// Shows a file.
#[page("/source/{path..}")]
pub(crate) fn source(path: Path<Text>) -> Result<impl Respond, Error> {
    let source = source_at(&path).ok_or_else(|| Error::not_found("there is no such file here"))?;
    let is_document = source.extension() == "md";
    // A file is opened rarely, so it is rendered each time.
    let html = if is_document {
        render(source.text, source.folder()).html
    } else {
        code_block(source.text, source.extension())
    };
    let page = html! {
        <article class={if is_document { "document" } else { "listing" }}>
            <p class="path"><a href="/source">"Sources"</a>" / "{source.path}</p>
            {if !is_document { <h1>{source.path.rsplit('/').next().unwrap_or_default()}</h1> }}
            {raw(html)}
        </article>
    };
    Ok(page.with_title(source.path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn has_every_chapter_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
        let chapters = CHAPTERS.iter().map(|chapter| format!("{}.md", chapter.key));
        let known: BTreeSet<String> = chapters.chain(["README.md".to_owned()]).collect();
        assert_eq!(known, files);
    }

    #[test]
    fn has_the_order_parts_and_titles_of_the_contents() {
        let mut listed = Vec::new();
        for line in CONTENTS.lines() {
            if let Some(part) = line.strip_prefix("## ") {
                listed.push(part.to_owned());
            } else if let Some((title, rest)) =
                line.strip_prefix("| [").and_then(|row| row.split_once("]("))
                && let Some((key, _)) = rest.split_once(".md)")
                && !key.contains('/')
            {
                listed.push(format!("{key}: {title}"));
            }
        }
        let mut rest = &CHAPTERS[..];
        let mut own = Vec::new();
        for part in &PARTS {
            let (chapters, others) = rest.split_at(part.length);
            own.push(part.title.to_owned());
            own.extend(
                chapters.iter().map(|chapter| format!("{}: {}", chapter.key, chapter.title)),
            );
            rest = others;
        }
        assert_eq!(own, listed);
    }

    #[test]
    fn begins_every_chapter_with_its_title() {
        for chapter in &CHAPTERS {
            assert!(chapter.source.starts_with("# "), "{}", chapter.key);
            assert!(chapter.rendered().html.starts_with("<h1 id="), "{}", chapter.key);
        }
    }
}
