//! Validation of selectors: syntax, and names of CSS and HTML (Selectors 4).

use bine_vocabulary::{self as vocabulary, MATHML, SVG};

use super::did_you_mean;
use super::lex::{Gap, Piece, PieceKind};
use super::parse::Mistake;

/// Pseudo-classes and pseudo-elements with selectors as arguments.
const OF_SELECTORS: [&str; 11] = [
    "cue",
    "current",
    "global",
    "has",
    "host",
    "host-context",
    "is",
    "matches",
    "not",
    "slotted",
    "where",
];

/// The context of a selector.
#[derive(Clone, Copy)]
pub(super) struct SelectorContext {
    /// Whether it may begin with a combinator: in a nested rule, or in `:has(..)`.
    pub(super) is_relative: bool,
    /// Whether the sheet's names are local, so that `:global(..)` has a meaning.
    pub(super) is_scoped: bool,
}

/// Reports the errors in a list of selectors. `at` is the position of an error about a missing
/// selector.
pub(super) fn list(
    pieces: &[Piece<'_>],
    context: SelectorContext,
    at: usize,
    mistakes: &mut Vec<Mistake>,
) {
    // An empty list is reported by the parser, and allowed in `:is()`.
    let selectors = super::split_at_depth(pieces, ",").filter(|_| !pieces.is_empty());
    for selector in selectors {
        match selector.first() {
            Some(_) => complex(selector, context, mistakes),
            None => mistakes.push((at, "a selector is missing between commas".to_owned())),
        }
    }
}

/// Reports the errors in a complex selector.
fn complex(pieces: &[Piece<'_>], context: SelectorContext, mistakes: &mut Vec<Mistake>) {
    let mut combined = !context.is_relative;
    let mut rest = pieces;
    while let [piece, after @ ..] = rest {
        let is_combinator = piece.kind == PieceKind::Mark && [">", "+", "~"].contains(&piece.text);
        if is_combinator && (combined || after.is_empty()) {
            let side = if after.is_empty() { "after" } else { "before" };
            let message = format!("`{}` needs a selector {side} it", piece.text);
            mistakes.push((piece.at, message));
        }
        combined = is_combinator;
        rest = if is_combinator { after } else { simple(rest, context, mistakes) };
    }
}

/// Checks a simple selector and returns the tokens after it.
fn simple<'p>(
    pieces: &'p [Piece<'p>],
    context: SelectorContext,
    mistakes: &mut Vec<Mistake>,
) -> &'p [Piece<'p>] {
    let (piece, after) = pieces.split_first().expect("callers pass a nonempty selector");
    let adjacent = after.first().filter(|next| next.gap == Gap::None && !next.comment);
    match piece.kind {
        PieceKind::Word => {
            let is_namespace = adjacent.is_some_and(|next| next.is("|"));
            if !is_namespace {
                element(piece, mistakes);
            }
            after
        }
        PieceKind::Hash => after,
        PieceKind::Open if piece.text == "[" => attribute(piece, after, mistakes),
        PieceKind::Mark if [".", ":"].contains(&piece.text) => match adjacent {
            Some(name) if piece.text == ":" => pseudo(name, &after[1..], context, mistakes),
            Some(name) if name.is_word() => &after[1..],
            _ => {
                let what = if piece.is(".") { "a class" } else { "a state such as `hover`" };
                mistakes.push((piece.at, format!("the name of {what} is missing after this")));
                after
            }
        },
        PieceKind::Mark if piece.text == "|" => match after {
            [name, rest @ ..] if name.is_word() || name.is("*") => rest,
            _ => after,
        },
        PieceKind::Mark if ["*", "&"].contains(&piece.text) => after,
        PieceKind::Number | PieceKind::Dimension(_) if piece.text.starts_with('.') => {
            let message = "a class does not begin with a digit".to_owned();
            mistakes.push((piece.at, message));
            after
        }
        _ => {
            mistakes.push((piece.at, format!("`{}` is not allowed in a selector", piece.text)));
            if piece.opens() { inside(after).1 } else { after }
        }
    }
}

fn element(piece: &Piece<'_>, mistakes: &mut Vec<Mistake>) {
    let name = piece.text.to_ascii_lowercase();
    if vocabulary::element(&name).is_some()
        || vocabulary::is_custom(&name)
        || SVG.has_element(piece.text)
        || MATHML.has_element(piece.text)
    {
        return;
    }
    let current = vocabulary::elements().iter().filter(|known| known.deprecated.is_none());
    let meant = did_you_mean("", &name, current.map(|known| known.name));
    let message = format!("HTML has no element `{name}`{meant}; a class is `.{name}`");
    mistakes.push((piece.at, message));
}

/// Checks `[name]` or `[name operator value]`, starting after the bracket.
fn attribute<'p>(
    bracket: &Piece<'_>,
    after: &'p [Piece<'p>],
    mistakes: &mut Vec<Mistake>,
) -> &'p [Piece<'p>] {
    let (inside, rest) = inside(after);
    // `|` separates a prefix, and an operator may have one sign before its `=`.
    let name = inside.iter().take_while(|piece| piece.is_word() || piece.is("|") || piece.is("*"));
    let after_name = match &inside[name.count()..] {
        // This `|` belongs to an operator.
        after @ [equals, ..] if equals.is("=") => after,
        [sign, after @ ..] if ["~", "^", "$"].iter().any(|mark| sign.is(mark)) => after,
        after => after,
    };
    let is_valid =
        inside.first().is_some_and(|first| first.is_word() || first.is("*") || first.is("|"))
            && match after_name {
                [] => true,
                [equals, value, flags @ ..] => {
                    equals.is("=")
                        && matches!(value.kind, PieceKind::Word | PieceKind::String)
                        && matches!(flags, [] | [Piece { kind: PieceKind::Word, .. }])
                }
                _ => false,
            };
    if !is_valid {
        let message = "select an attribute with `[name]` or `[name=\"value\"]`".to_owned();
        mistakes.push((inside.first().unwrap_or(bracket).at, message));
    }
    rest
}

/// Checks the tokens after a colon: a second colon and a pseudo-element, or a pseudo-class.
fn pseudo<'p>(
    first: &Piece<'p>,
    after: &'p [Piece<'p>],
    context: SelectorContext,
    mistakes: &mut Vec<Mistake>,
) -> &'p [Piece<'p>] {
    let is_element = first.is(":") && after.first().is_some_and(|name| name.gap == Gap::None);
    let (name, after) = match after {
        [name, after @ ..] if is_element => (name, after),
        _ => (first, after),
    };
    if !matches!(name.kind, PieceKind::Word | PieceKind::Function) {
        mistakes.push((name.at, "the name of a state such as `hover` is expected here".to_owned()));
        return after;
    }
    known_pseudo(name, is_element, context, mistakes);
    if name.kind == PieceKind::Word {
        return after;
    }
    let (arguments, rest) = inside(after);
    let function = name.name().to_ascii_lowercase();
    if function.starts_with("nth-") && !function.ends_with("fragment") {
        let of = arguments.iter().position(|piece| piece.is("of"));
        let (nth, selectors) = arguments.split_at(of.unwrap_or(arguments.len()));
        if !is_nth(nth) {
            let message =
                "a position is `odd`, `even`, a number, or `An+B` as in `2n + 1`".to_owned();
            mistakes.push((arguments.first().unwrap_or(name).at, message));
        }
        if let [of, selectors @ ..] = selectors {
            list(selectors, context, of.at, mistakes);
        }
    } else if OF_SELECTORS.contains(&&*function) {
        let inner = SelectorContext { is_relative: function == "has", ..context };
        list(arguments, inner, name.at, mistakes);
    }
    rest
}

fn known_pseudo(
    name: &Piece<'_>,
    is_element: bool,
    context: SelectorContext,
    mistakes: &mut Vec<Mistake>,
) {
    let word = name.name().to_ascii_lowercase();
    if word.starts_with('-') {
        return;
    }
    if word == "global" && !is_element {
        if !context.is_scoped {
            let message = "every class of this sheet is global: `:global(..)` needs a sheet that starts with `mod`";
            mistakes.push((name.at, message.to_owned()));
        } else if name.kind == PieceKind::Word {
            mistakes.push((name.at, "`:global(..)` takes a selector".to_owned()));
        }
        return;
    }
    let known =
        if is_element { vocabulary::pseudo_elements() } else { vocabulary::pseudo_classes() };
    let takes = known.contains(&&*format!("{word}()"));
    let stands_alone = known.contains(&&*word);
    let (colons, kind) = if is_element { ("::", "pseudo-element") } else { (":", "pseudo-class") };
    let message = match name.kind {
        PieceKind::Word if stands_alone => return,
        PieceKind::Function if takes => return,
        PieceKind::Word if takes => {
            format!("`{colons}{word}` takes an argument: `{colons}{word}(..)`")
        }
        _ if stands_alone => format!("`{colons}{word}` takes no argument"),
        _ => {
            let names = known.iter().map(|known| known.trim_end_matches("()"));
            let other = if is_element {
                vocabulary::pseudo_classes()
            } else {
                vocabulary::pseudo_elements()
            };
            let meant = if other.iter().any(|other| other.trim_end_matches("()") == word) {
                let colons = if is_element { ":" } else { "::" };
                format!("; did you mean `{colons}{word}`?")
            } else {
                did_you_mean(colons, &word, names)
            };
            format!("CSS has no {kind} `{colons}{word}`{meant}")
        }
    };
    mistakes.push((name.at, message));
}

/// Whether this is `An+B` (CSS Syntax 3, section 6).
fn is_nth(pieces: &[Piece<'_>]) -> bool {
    let text: String = pieces.iter().map(|piece| piece.text).collect();
    let text = text.to_ascii_lowercase();
    if text == "odd" || text == "even" {
        return true;
    }
    let is_whole = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    match text.split_once('n') {
        None => is_whole(&text),
        Some((step, offset)) => {
            let offset_is_signed = offset.starts_with(['+', '-']);
            (["", "+", "-"].contains(&step) || is_whole(step))
                && (offset.is_empty() || offset_is_signed && is_whole(offset))
        }
    }
}

/// Splits the tokens at the closing bracket into those before and those after it.
pub fn inside<'p>(pieces: &'p [Piece<'p>]) -> (&'p [Piece<'p>], &'p [Piece<'p>]) {
    let mut depth = 0_usize;
    for (at, piece) in pieces.iter().enumerate() {
        if piece.opens() {
            depth += 1;
        } else if piece.kind == PieceKind::Close {
            if depth == 0 {
                return (&pieces[..at], &pieces[at + 1..]);
            }
            depth -= 1;
        }
    }
    (pieces, &[])
}
