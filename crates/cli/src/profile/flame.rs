//! A flame graph of call stacks as an SVG image without script: the callers are above, and a function is
//! as wide as its part of all allocations.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use bine_profile::{Count, Profile, Selection};

use super::arguments::Measure;

/// The width of the image in pixels.
const WIDTH: f64 = 1200.0;
/// The height of a row in pixels.
const ROW: usize = 17;
/// The most rows. The innermost functions of a deeper stack are left out.
const MAX_ROWS: usize = 300;
/// A narrower function is left out, in pixels.
const MIN_WIDTH: f64 = 0.1;
/// The width of a letter in pixels.
const LETTER: f64 = 6.6;

/// A function in the place of the graph.
#[derive(Default)]
struct Node {
    count: Count,
    /// The called functions, as indexes of the list of nodes, by name.
    called: BTreeMap<String, usize>,
}

/// Writes the image. Routes and stages are its first rows.
pub(super) fn write(
    profile: &Profile,
    selection: &Selection,
    measure: Measure,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (nodes, depth) = nodes_of(profile, selection, measure);
    let all = measure.of(nodes[0].count).max(1);
    let height = (depth + 2) * ROW;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">"
    )?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
    let requests = profile.requests;
    let title = match measure {
        Measure::Samples => format!("{}: {} samples", profile.program, nodes[0].count.number),
        Measure::Number | Measure::Bytes => format!("{}: {requests} requests", profile.program),
    };
    writeln!(out, "<text x=\"4\" y=\"13\">{}</text>", Escaped(&title))?;
    let mut open = vec![(0, "all", 0.0, 1)];
    while let Some((index, name, left, row)) = open.pop() {
        let node = &nodes[index];
        let width = measure.of(node.count) as f64 / all as f64 * WIDTH;
        let title = format!("{name}: {}", measure.describe(node.count));
        write_function(out, [name, &title], [left, width], row)?;
        let mut left = left;
        for (name, called) in &node.called {
            let width = measure.of(nodes[*called].count) as f64 / all as f64 * WIDTH;
            if width >= MIN_WIDTH {
                open.push((*called, name, left, row + 1));
            }
            left += width;
        }
    }
    writeln!(out, "</svg>")
}

impl Measure {
    const fn of(self, count: Count) -> u64 {
        match self {
            Self::Number | Self::Samples => count.number,
            Self::Bytes => count.bytes,
        }
    }

    fn describe(self, count: Count) -> String {
        let Count { number, bytes } = count;
        match self {
            Self::Number | Self::Bytes => format!("{number} allocations, {bytes} bytes"),
            Self::Samples => format!("{number} samples"),
        }
    }
}

/// The functions of the selected stacks, the root first, and the number of rows.
fn nodes_of(profile: &Profile, selection: &Selection, measure: Measure) -> (Vec<Node>, usize) {
    let (mut nodes, mut depth) = (vec![Node::default()], 1);
    for stack in profile.stacks.iter().filter(|stack| selection.has(stack)) {
        let route = if stack.route.is_empty() { "(no route yet)" } else { &stack.route };
        let functions = stack.frames.iter().rev();
        let functions = functions.filter_map(|frame| profile.frames.get(*frame as usize));
        let owners = [route, stack.stage.name()];
        let owners = owners.into_iter().filter(|_| measure != Measure::Samples);
        let names = owners.chain(functions.map(|frame| &*frame.function));
        nodes[0].count.add(stack.count);
        let (mut at, mut rows) = (0, 1);
        for name in names.take(MAX_ROWS) {
            let next = nodes.len();
            at = match nodes[at].called.get(name) {
                Some(known) => *known,
                None => {
                    nodes[at].called.insert(name.to_owned(), next);
                    nodes.push(Node::default());
                    next
                }
            };
            nodes[at].count.add(stack.count);
            rows += 1;
        }
        depth = depth.max(rows);
    }
    (nodes, depth)
}

/// Writes the box of a function, with its name as far as it fits, and with its title.
fn write_function(
    out: &mut dyn Write,
    [name, title]: [&str; 2],
    [left, width]: [f64; 2],
    row: usize,
) -> io::Result<()> {
    let top = row * ROW;
    write!(
        out,
        "<g><title>{}</title><rect x=\"{left:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\" fill=\"hsl({} 70% 75%)\"/>",
        Escaped(title),
        (width - 0.5).max(MIN_WIDTH),
        ROW - 1,
        hue(name)
    )?;
    #[expect(clippy::cast_sign_loss, reason = "a width is not negative")]
    let letters = (width / LETTER) as usize;
    if letters > 3 {
        let shown = match name.char_indices().nth(letters) {
            Some(_) => {
                let end = name.char_indices().nth(letters - 2).map_or(name.len(), |(at, _)| at);
                format!("{}..", &name[..end])
            }
            None => name.to_owned(),
        };
        let (x, y) = (left + 3.0, top + ROW - 5);
        write!(out, "<text x=\"{x:.2}\" y=\"{y}\">{}</text>", Escaped(&shown))?;
    }
    writeln!(out, "</g>")
}

/// The color of a function: the same for all functions of a crate.
fn hue(name: &str) -> u32 {
    let first = name.trim_start_matches(['<', '&', ' ']).split("::").next().unwrap_or_default();
    let hash = first.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) + u32::from(byte));
    hash % 360
}

/// Shows a text in XML. Characters that XML forbids become spaces.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char(' ')?,
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}
