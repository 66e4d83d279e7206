//! Validation of properties and values: words, units, colors and functions.
//!
//! Words are checked only outside of functions, because the tables have no grammar for arguments.
//! Names with a leading dash belong to browsers, and the value of a custom property may be
//! anything.

use bine_vocabulary::{self as vocabulary, Property, nearest};

use super::did_you_mean;
use super::lex::{Piece, PieceKind};
use super::parse::Mistake;
use super::tree::{AtRule, Declaration};

/// The units of CSS Values 4, Grid 2 and Speech 1.
const UNITS: [&str; 61] = [
    "em", "rem", "ex", "rex", "cap", "rcap", "ch", "rch", "ic", "ric", "lh", "rlh", "vw", "svw",
    "lvw", "dvw", "vh", "svh", "lvh", "dvh", "vi", "svi", "lvi", "dvi", "vb", "svb", "lvb", "dvb",
    "vmin", "svmin", "lvmin", "dvmin", "vmax", "svmax", "lvmax", "dvmax", "cqw", "cqh", "cqi",
    "cqb", "cqmin", "cqmax", "cm", "mm", "Q", "in", "pt", "pc", "px", "deg", "grad", "rad", "turn",
    "s", "ms", "Hz", "kHz", "dpi", "dpcm", "dppx", "x",
];

/// Units other than those of lengths, angles, times and resolutions: fractions in a grid, and
/// speech.
const RARE_UNITS: [&str; 3] = ["fr", "dB", "st"];

/// Functions that the vocabulary lacks because they are not values: those of `src` in `@font-face`,
/// and of alternate glyphs.
const FUNCTIONS: [&str; 9] = [
    "annotation",
    "character-variant",
    "format",
    "local",
    "ornaments",
    "styleset",
    "stylistic",
    "swash",
    "tech",
];

/// An older spelling whose replacement is not yet widely supported.
const PREFERRED_ALIAS: &str = "font-stretch";

/// The maximum number of words that a message lists.
const MAX_LISTED_WORDS: usize = 16;

/// Reports the errors in a declaration. `others` contains the names in the same block.
pub(super) fn property(
    declaration: &Declaration<'_>,
    others: &[&str],
    mistakes: &mut Vec<Mistake>,
) {
    let name = declaration.name.text.to_ascii_lowercase();
    if name.starts_with('-') {
        return;
    }
    let value = important(declaration.value, mistakes);
    let property = vocabulary::property(&name);
    match property {
        None => {
            let names = vocabulary::properties().iter().map(|known| known.name);
            let meant = did_you_mean("", &name, names.filter(|name| !name.starts_with('-')));
            let message =
                format!("CSS has no property `{name}`{meant}; a custom property begins with `--`");
            mistakes.push((declaration.name.at, message));
        }
        Some(Property { alias_of: Some(newer), .. })
            if name != PREFERRED_ALIAS
                && !others.iter().any(|other| other.eq_ignore_ascii_case(newer)) =>
        {
            let message = format!("`{name}` is an older spelling: write `{newer}`, or both");
            mistakes.push((declaration.name.at, message));
        }
        Some(_) => {}
    }
    pieces(value, property, mistakes);
}

/// Reports the errors in a descriptor of an at-rule.
pub(super) fn descriptor(
    rule: &AtRule<'_>,
    known: vocabulary::Words,
    declaration: &Declaration<'_>,
    mistakes: &mut Vec<Mistake>,
) {
    let name = declaration.name.text;
    if name.starts_with('-') {
        return;
    }
    if !known.contains(name) && name != PREFERRED_ALIAS {
        let meant = did_you_mean("", name, known);
        let all = match known.iter().count() {
            ..=MAX_LISTED_WORDS => format!("; it takes {known}"),
            _ => String::new(),
        };
        let message = format!("`{}` has no `{name}`{meant}{all}", rule.name.text);
        return mistakes.push((declaration.name.at, message));
    }
    // `U+0025-00FF` would be lexed as numbers.
    if !name.eq_ignore_ascii_case("unicode-range") {
        pieces(declaration.value, None, mistakes);
    }
}

/// The value without an `!important` at its end.
fn important<'p>(value: &'p [Piece<'p>], mistakes: &mut Vec<Mistake>) -> &'p [Piece<'p>] {
    let Some(place) = value.iter().position(|piece| piece.is("!")) else { return value };
    let (before, mark) = value.split_at(place);
    match mark {
        [_, word] if word.is("important") => {}
        [_, word, ..] => {
            let message = "only `!important` begins with `!`, and it ends the value";
            mistakes.push((word.at, message.to_owned()));
        }
        _ => mistakes.push((mark[0].at, "only `!important` begins with `!`".to_owned())),
    }
    before
}

/// Reports invalid tokens in a value. Words are checked if the property is known.
fn pieces(value: &[Piece<'_>], property: Option<&Property>, mistakes: &mut Vec<Mistake>) {
    let mut open = Vec::new();
    for piece in value {
        let mut mistake = |message: String| mistakes.push((piece.at, message));
        match piece.kind {
            PieceKind::Function => {
                let name = piece.name();
                if !is_function(name) {
                    let meant = did_you_mean("", name, vocabulary::functions().iter().copied());
                    mistake(format!("CSS has no function `{name}()`{meant}"));
                }
                open.push(name);
            }
            PieceKind::Open => open.push(""),
            PieceKind::Close => {
                open.pop();
            }
            PieceKind::Dimension(unit) => unit_of(piece, unit, mistakes),
            // Only `element(#id)` takes an id.
            PieceKind::Hash if !open.contains(&"element") && !is_hex(piece.name()) => {
                mistake(format!(
                    "`{}` is not a color: it needs 3, 4, 6 or 8 hexadecimal digits after `#`",
                    piece.text
                ));
            }
            PieceKind::At => {
                mistake(format!("`{}` begins an at-rule and is not a value", piece.text));
            }
            PieceKind::Word if open.is_empty() => {
                if let Some(property) = property.filter(|property| !property.accepts(piece.text)) {
                    mistake(not_a_word(piece.text, property));
                }
            }
            PieceKind::Number if open.is_empty() && !is_zero(piece.text) => {
                if let Some(property) = property.filter(|property| !property.numbers) {
                    let name = property.name;
                    mistake(format!(
                        "`{}` needs a unit: `{name}` takes no number without a unit",
                        piece.text
                    ));
                }
            }
            PieceKind::Mark if open.is_empty() && ![",", "/"].contains(&piece.text) => {
                mistake(format!("`{}` is not allowed in a value", piece.text));
            }
            _ => {}
        }
    }
    for (function, arguments) in functions(value) {
        if let ("var", Some(name)) = (function, arguments.first())
            && !(name.is_word() && name.text.starts_with("--"))
        {
            let message = "`var(..)` takes the name of a custom property, which begins with `--`";
            mistakes.push((name.at, message.to_owned()));
        }
    }
}

/// Each function in a value, with the tokens after its parenthesis.
fn functions<'p>(value: &'p [Piece<'p>]) -> impl Iterator<Item = (&'p str, &'p [Piece<'p>])> {
    let functions = value.iter().enumerate().filter(|(_, piece)| piece.kind == PieceKind::Function);
    functions.map(|(at, piece)| (piece.name(), &value[at + 1..]))
}

fn is_function(name: &str) -> bool {
    let mut known = vocabulary::functions().iter().chain(&FUNCTIONS);
    name.starts_with('-') || known.any(|known| known.eq_ignore_ascii_case(name))
}

/// Reports an unknown unit.
pub(super) fn unit_of(piece: &Piece<'_>, unit: usize, mistakes: &mut Vec<Mistake>) {
    let unit_name = &piece.text[unit..];
    let mut units = UNITS.iter().chain(&RARE_UNITS).copied();
    if !units.clone().any(|known| known.eq_ignore_ascii_case(unit_name)) {
        // Suggests swapped letters first: an edit distance matches too many of the short names.
        let swapped = |known: &&str| is_swapped(unit_name, known);
        let meant = units.find(swapped).or_else(|| nearest(unit_name, UNITS));
        let meant = meant.map_or_else(String::new, |unit| format!("; did you mean `{unit}`?"));
        mistakes.push((piece.at, format!("CSS has no unit `{unit_name}`{meant}")));
    }
}

/// Whether two words are permutations of each other.
fn is_swapped(one: &str, other: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters = word.to_ascii_lowercase().into_bytes();
        letters.sort_unstable();
        letters
    };
    sorted(one) == sorted(other)
}

/// Whether a number is 0, which needs no unit.
fn is_zero(number: &str) -> bool {
    number.bytes().all(|byte| b"+-0.".contains(&byte))
}

fn is_hex(digits: &str) -> bool {
    [3, 4, 6, 8].contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn not_a_word(word: &str, property: &Property) -> String {
    let colors = if property.colors { vocabulary::colors() } else { vocabulary::Words::default() };
    let meant = did_you_mean("", word, property.words.iter().chain(colors));
    let name = property.name;
    let words = match (property.words.iter().count(), property.colors) {
        (0, false) => "; it takes only the words of every property, such as `inherit`".to_owned(),
        (0, true) => "; it takes a color".to_owned(),
        (1..=MAX_LISTED_WORDS, false) => format!("; its words are {}", property.words),
        (1..=MAX_LISTED_WORDS, true) => format!("; its words are {}, and colors", property.words),
        _ => String::new(),
    };
    format!("`{name}` has no word `{word}`{meant}{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_colors_of_valid_length() {
        assert!(is_hex("fff") && is_hex("12345678") && !is_hex("12345") && !is_hex("ggg"));
    }
}
