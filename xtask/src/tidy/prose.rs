//! Rule: prose avoids wordings that readers of other projects do not know.
//!
//! Comments of Rust files and text of Markdown files are counted for each crate and each top folder.
//! A habit is not a mistake, but many habits make a text hard to read for a stranger. Well-known
//! projects have about 3 for each 1 000 words; `CONTRIBUTING.md` shows what to write instead.

use std::collections::BTreeMap;

use super::{Complaint, File, Tree, has_extension};

/// Habits for each 1 000 words that a crate or folder may have.
const MAX_RATE: f64 = 6.0;
/// Places that have not been rewritten yet, with their limits. A limit may only shrink.
const EXCEPTIONS: [(&str, f64); 1] = [("crates/server", 60.0)];
/// Places with fewer words are not judged.
const MIN_WORDS: usize = 300;

/// Words for a person, a verb or a place where a technical term exists.
const WORDS: [&str; 22] = [
    "whoever", "whom", "stands", "stood", "lies", "lay", "behind", "beside", "tells", "told",
    "tell", "says", "said", "comes", "came", "goes", "went", "gone", "nobody", "nothing", "none",
    "others",
];

/// The same, of two words.
const PAIRS: [(&str, &str); 20] = [
    ("of", "which"),
    ("of", "those"),
    ("of", "these"),
    ("of", "whose"),
    ("of", "whom"),
    ("for", "who"),
    ("to", "who"),
    ("those", "who"),
    ("so", "many"),
    ("so", "much"),
    ("so", "long"),
    ("so", "often"),
    ("is", "made"),
    ("are", "made"),
    ("was", "made"),
    ("no", "one"),
    ("the", "other"),
    ("who", "has"),
    ("who", "is"),
    ("who", "asks"),
];

/// Reports each crate and folder with more habits than it may have, with its worst paragraphs.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let mut places: BTreeMap<&str, Place<'_>> = BTreeMap::new();
    for file in &tree.files {
        let Some(name) = place(&file.path) else { continue };
        let place = places.entry(name).or_default();
        for (line, paragraph) in paragraphs(file) {
            place.add(file, line, &paragraph);
        }
    }
    for (name, place) in places {
        let exception = EXCEPTIONS.iter().find(|(folder, _)| *folder == name);
        let limit = exception.map_or(MAX_RATE, |(_, limit)| *limit);
        if place.words >= MIN_WORDS && place.rate() > limit {
            let what = format!(
                "the prose of {name} has {:.1} habits of wording in 1 000 words, more than {limit}; \
                 write for strangers (CONTRIBUTING.md), for example here: {}",
                place.rate(),
                place.worst()
            );
            complaints.push(Complaint { path: name.to_owned(), line: 0, what });
        }
    }
}

/// The counts of a crate or a folder.
#[derive(Default)]
struct Place<'t> {
    words: usize,
    habits: usize,
    /// The paragraphs with habits: their number, their file and line.
    found: Vec<(usize, &'t str, usize)>,
}

impl<'t> Place<'t> {
    fn add(&mut self, file: &'t File, line: usize, paragraph: &str) {
        let words: Vec<String> = words(paragraph).collect();
        self.words += words.len();
        let single = words.iter().filter(|word| WORDS.contains(&word.as_str())).count();
        let pair = |pair: &&[String]| PAIRS.contains(&(&*pair[0], &*pair[1]));
        let habits = single + words.windows(2).filter(pair).count();
        if habits > 0 {
            self.habits += habits;
            self.found.push((habits, &file.path, line));
        }
    }

    fn rate(&self) -> f64 {
        1000.0 * self.habits as f64 / self.words.max(1) as f64
    }

    /// The places of the paragraphs with most habits.
    fn worst(&self) -> String {
        let mut found = self.found.clone();
        found.sort_by_key(|(habits, ..)| std::cmp::Reverse(*habits));
        let places = found.iter().take(5).map(|(_, path, line)| format!("{path}:{line}"));
        places.collect::<Vec<_>>().join(", ")
    }
}

/// The crate or the folder that a file belongs to; `None`: its text is not judged.
fn place(path: &str) -> Option<&str> {
    if path == "CHANGELOG.md" || path.contains("/plots/") || path.contains("measurements") {
        return None;
    }
    let (top, rest) = path.split_once('/').unwrap_or((path, ""));
    match top {
        "crates" => Some(&path[..top.len() + 1 + rest.find('/')?]),
        "docs" | "examples" | "bench" | "xtask" | "fuzz" => Some(top),
        _ if rest.is_empty() && has_extension(path, "md") => Some(path),
        _ => None,
    }
}

/// The lower-case words of a paragraph, without code, links and addresses.
fn words(paragraph: &str) -> impl Iterator<Item = String> {
    let mut prose = String::new();
    for (number, part) in paragraph.split('`').enumerate() {
        // Text between backticks is code.
        prose.push_str(if number % 2 == 0 { part } else { " x " });
    }
    let without_urls = |word: &&str| !word.contains("://") && !word.contains("](");
    let prose: Vec<String> =
        prose.split_whitespace().filter(without_urls).map(str::to_lowercase).collect();
    prose.into_iter().flat_map(|word| {
        let parts = word.split(|char: char| !char.is_alphanumeric() && char != '\'');
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    })
}

/// The paragraphs of a file with their first lines: comments of Rust, text of Markdown.
fn paragraphs(file: &File) -> Vec<(usize, String)> {
    let lines: Vec<Option<&str>> = match &file.rust {
        Some(_) => file.text.lines().map(comment).collect(),
        None if has_extension(&file.path, "md") => file.text.lines().map(Some).collect(),
        None => return Vec::new(),
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_fenced, mut is_open) = (false, false);
    for (number, line) in (1..).zip(lines) {
        let text = line.unwrap_or_default().trim();
        if text.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let is_prose = !is_fenced && !text.is_empty() && !text.starts_with(['|', '#', '`']);
        match (is_prose && line.is_some(), is_open) {
            (true, true) => {
                let (_, paragraph) = found.last_mut().expect("a paragraph is open");
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            (true, false) => found.push((number, text.to_owned())),
            (false, _) => {}
        }
        is_open = is_prose && line.is_some();
        // A comment that ends takes its fence with it.
        is_fenced &= line.is_some();
    }
    found
}

/// The text of a line that is a comment alone.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::super::check as check_rule;
    use super::*;

    #[test]
    fn counts_habits_for_each_crate() {
        let plain = "/// The server closes the connection when the client is silent.\n".repeat(40);
        let odd = "/// Whoever comes is told what stands behind it, and nobody waits.\n".repeat(40);
        check_rule(
            check,
            &[("crates/plain/src/lib.rs", &plain), ("crates/odd/src/lib.rs", &odd)],
            &[
                "crates/odd: the prose of crates/odd has 545.5 habits of wording in 1 000 words, more \
               than 6; write for strangers (CONTRIBUTING.md), for example here: crates/odd/src/lib.rs:1",
            ],
        );
    }

    #[test]
    fn leaves_code_tables_and_strings_out() {
        let text = "// ```\n// whoever comes\n// ```\n// The word `whoever` is code.\n\
                    const TEXT: &str = \"whoever comes\";\n";
        let file = File::new("crates/a/src/lib.rs", text.to_owned());
        assert_eq!(paragraphs(&file), [(4, "The word `whoever` is code.".to_owned())]);
        let file = File::new("docs/a.md", "# Whoever\n\n| whoever |\n\nThe\nserver\n".to_owned());
        assert_eq!(paragraphs(&file), [(5, "The server".to_owned())]);
        let words: Vec<_> = words("The `code` of [it](https://x.example/whoever) isn't.").collect();
        assert_eq!(words, ["the", "x", "of", "isn't"]);
    }
}
