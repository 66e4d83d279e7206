//! Searches the guide: which sections contain all words of a query, best first.

use std::sync::OnceLock;

use bine::prelude::*;
use pulldown_cmark::{Event, Tag, TagEnd};

use super::guide::{CHAPTERS, Chapter, guide_page};
use super::markdown::{Anchors, heading_text, language_of, mark_words, parse, shown_code};

/// The longest query, in characters; the rest is ignored.
const MAX_QUERY: usize = 100;
/// The words of a query that count.
const MAX_WORDS: usize = 8;
/// The results that a search shows.
const MAX_RESULTS: usize = 20;
/// The length of the text around a match, in bytes.
const EXCERPT: usize = 160;

/// A heading of the guide and the text up to the next one.
struct Section {
    chapter: &'static Chapter,
    anchor: String,
    heading: String,
    text: String,
    /// `heading` and `text` for comparison.
    lower_heading: String,
    lower_text: String,
}

/// A section that matches.
struct Match {
    section: &'static Section,
    score: usize,
}

/// Shows the sections that match a query. It runs on a worker, since it reads the whole guide.
#[page("/guide/search")]
pub(crate) fn search(q: Query<Option<Text>>) -> impl Respond {
    let query: String = q.0.unwrap_or_default().trim().chars().take(MAX_QUERY).collect();
    let words = words_of(&query);
    let (count, best) = find(&words);
    let results: Vec<_> = best.iter().map(|found| result(found.section, &words)).collect();
    let summary = match (words.is_empty(), count) {
        (true, _) => "Write a word, such as an option or the name of a type.".to_owned(),
        (false, 0) => format!("No section has {query}."),
        (false, 1) => format!("One section has {query}:"),
        (false, count) if count > MAX_RESULTS => {
            format!("{count} sections have {query}; the best {MAX_RESULTS}:")
        }
        (false, count) => format!("{count} sections have {query}:"),
    };
    let article = html! {
        <article>
            <h1>"Search"</h1>
            <p role="status">{summary}</p>
            <ol class="results">
                {for (address, chapter, heading, excerpt) in results {
                    <li>
                        <a href={address}><small>{chapter}</small>{raw(heading)}</a>
                        <p>{raw(excerpt)}</p>
                    </li>
                }}
            </ol>
        </article>
    };
    guide_page(Some("search"), query, article).with_title("Search")
}

/// The address of a section, its chapter, and its heading and an excerpt as HTML.
fn result(section: &'static Section, words: &[String]) -> (String, &'static str, String, String) {
    let Section { chapter, anchor, heading, text, .. } = section;
    let address = format!("/guide/{}#{anchor}", chapter.key);
    (
        address,
        chapter.title,
        mark_words(heading, words),
        mark_words(excerpt(section, text, words), words),
    )
}

/// The text around the first word that it contains.
fn excerpt<'t>(section: &Section, text: &'t str, words: &[String]) -> &'t str {
    let first = words.iter().filter_map(|word| section.lower_text.find(word.as_str())).min();
    let start = first.unwrap_or(0).saturating_sub(EXCERPT / 3);
    let start = text.floor_char_boundary(start);
    // Begins with a whole word.
    let start =
        if start == 0 { 0 } else { text[start..].find(' ').map_or(start, |at| start + at + 1) };
    let end = text.floor_char_boundary(start + EXCERPT);
    let end = if end == text.len() {
        end
    } else {
        text[start..end].rfind(' ').map_or(end, |at| start + at)
    };
    &text[start..end]
}

/// The words of a query, in lowercase ASCII.
fn words_of(query: &str) -> Vec<String> {
    query.to_ascii_lowercase().split_whitespace().take(MAX_WORDS).map(str::to_owned).collect()
}

/// Returns how many sections contain all words, and the best of them.
fn find(words: &[String]) -> (usize, Vec<Match>) {
    if words.is_empty() {
        return (0, Vec::new());
    }
    let found = sections().iter().filter_map(|section| {
        let score = section.score(words)?;
        Some(Match { section, score })
    });
    let mut found: Vec<Match> = found.collect();
    let count = found.len();
    // The sort is stable: of equal sections, the earlier chapter is first.
    found.sort_by_key(|found| std::cmp::Reverse(found.score));
    found.truncate(MAX_RESULTS);
    (count, found)
}

impl Section {
    fn new(chapter: &'static Chapter, anchor: String, heading: String) -> Self {
        let lower_heading = heading.to_ascii_lowercase();
        let (text, lower_text) = (String::new(), String::new());
        Self { chapter, anchor, heading, text, lower_heading, lower_text }
    }

    /// How well the section matches; `None`: it lacks a word. A heading outweighs any text, and a
    /// whole word outweighs a part of one.
    fn score(&self, words: &[String]) -> Option<usize> {
        let mut score = 0;
        for word in words {
            let in_heading = weight(&self.lower_heading, word, 1);
            let in_text = weight(&self.lower_text, word, 5);
            if in_heading + in_text == 0 {
                return None;
            }
            score += 20 * in_heading + in_text;
        }
        Some(score)
    }
}

/// Two points for an occurrence as a whole word, one for any other; of at most `most` occurrences.
fn weight(text: &str, word: &str, most: usize) -> usize {
    let is_boundary = |char: Option<char>| char.is_none_or(|char| !char.is_alphanumeric());
    let occurrences = text.match_indices(word).take(most);
    let points = occurrences.map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let is_whole = is_boundary(before.chars().next_back()) && is_boundary(after.chars().next());
        1 + usize::from(is_whole)
    });
    points.sum()
}

/// All sections, collected by the first search.
fn sections() -> &'static [Section] {
    static SECTIONS: OnceLock<Vec<Section>> = OnceLock::new();
    SECTIONS.get_or_init(|| CHAPTERS.iter().flat_map(sections_of).collect())
}

fn sections_of(chapter: &'static Chapter) -> Vec<Section> {
    let events: Vec<Event<'_>> = parse(chapter.source).collect();
    let mut anchors = Anchors::default();
    let mut sections: Vec<Section> = Vec::new();
    let (mut is_heading, mut is_rust) = (false, false);
    for (at, event) in events.iter().enumerate() {
        let text: &str = match event {
            Event::Start(Tag::Heading { .. }) => {
                let heading = heading_text(&events[at + 1..]);
                sections.push(Section::new(chapter, anchors.of(&heading), heading));
                is_heading = true;
                continue;
            }
            Event::End(TagEnd::Heading(_)) => {
                is_heading = false;
                continue;
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                is_rust = language_of(kind) == "rust";
                continue;
            }
            Event::End(TagEnd::CodeBlock) => {
                is_rust = false;
                " "
            }
            Event::Text(text) if is_rust => &shown_code(text),
            Event::Text(text) | Event::Code(text) => text,
            Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) | Event::SoftBreak => {
                " "
            }
            _ => continue,
        };
        if let Some(section) = sections.last_mut().filter(|_| !is_heading) {
            section.text.push_str(text);
        }
    }
    for section in &mut sections {
        section.lower_text = section.text.to_ascii_lowercase();
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn first(query: &str) -> String {
        let (_, found) = find(&words_of(query));
        let best = found.first().map(|found| found.section);
        best.map_or_else(String::new, |best| format!("{}#{}", best.chapter.key, best.anchor))
    }

    #[test]
    fn ranks_headings_before_text() {
        assert_eq!(first("captures"), "actions#captures");
        assert_eq!(first("health CHECKS"), "metrics#health-checks");
        assert_eq!(first("tutorial"), "tutorial#tutorial-a-live-message-board");
    }

    #[test]
    fn finds_code_and_requires_every_word() {
        assert_eq!(first("frame.set_in"), "actions#frames");
        assert_eq!(first("captures nosuchword"), "");
        assert_eq!(find(&words_of("  ")).0, 0);
    }

    #[test]
    fn bounds_words_and_results() {
        assert_eq!(words_of(&"a ".repeat(50)).len(), MAX_WORDS);
        let (count, shown) = find(&words_of("e"));
        assert!(count > MAX_RESULTS);
        assert_eq!(shown.len(), MAX_RESULTS);
    }

    #[test]
    fn cuts_excerpts_at_words() {
        let (_, found) = find(&words_of("durable"));
        for Match { section, .. } in found {
            let text = excerpt(section, &section.text, &words_of("durable"));
            assert!(text.len() <= EXCERPT && section.text.contains(text));
        }
    }
}
