//! Decides whether CSS knows a property, and whether its value is made of what it knows: words, units, colors,
//! functions.
//!
//! Words are looked up only outside of functions, where the table has the grammar of each property. What begins with
//! a dash is a browser's own, and the value of a custom property may be anything.

use bine_vocabulary::{self as vocabulary, Property, nearest};

use super::did_you_mean;
use super::lex::{Kind, Piece};
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

/// Units that are not of lengths, angles, times and resolutions: of a share in a grid, and of the voice.
const RARE_UNITS: [&str; 3] = ["fr", "dB", "st"];

/// Functions that the table lacks, since they are no values: of `src` in `@font-face`, and of alternate letters.
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

/// An older spelling whose newer one browsers do not know yet.
const STILL_BEST: &str = "font-stretch";

/// As many words of a property are told; more help nobody.
const MOST_WORDS: usize = 16;

/// Notes what is wrong with a declaration of a property. `others` has the names that stand in the same block.
pub(crate) fn property(
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
                format!("CSS has no property `{name}`{meant}; one of your own begins with `--`");
            mistakes.push((declaration.name.at, message));
        }
        Some(Property { alias_of: Some(newer), .. })
            if name != STILL_BEST
                && !others.iter().any(|other| other.eq_ignore_ascii_case(newer)) =>
        {
            let message = format!("`{name}` is an older spelling: write `{newer}`, or both");
            mistakes.push((declaration.name.at, message));
        }
        Some(_) => {}
    }
    pieces(value, property, mistakes);
}

/// Notes what is wrong with a descriptor of an at-rule.
pub(crate) fn descriptor(
    rule: &AtRule<'_>,
    known: vocabulary::Words,
    declaration: &Declaration<'_>,
    mistakes: &mut Vec<Mistake>,
) {
    let name = declaration.name.text;
    if name.starts_with('-') {
        return;
    }
    if !known.contains(name) && name != STILL_BEST {
        let meant = did_you_mean("", name, known);
        let all = match known.iter().count() {
            ..=MOST_WORDS => format!("; it takes {known}"),
            _ => String::new(),
        };
        let message = format!("`{}` has no `{name}`{meant}{all}", rule.name.text);
        return mistakes.push((declaration.name.at, message));
    }
    // `U+0025-00FF` is made of what looks like numbers.
    if !name.eq_ignore_ascii_case("unicode-range") {
        pieces(declaration.value, None, mistakes);
    }
}

/// The value without an `!important` at its end.
fn important<'p>(value: &'p [Piece<'p>], mistakes: &mut Vec<Mistake>) -> &'p [Piece<'p>] {
    let Some(place) = value.iter().position(|piece| piece.is("!")) else { return value };
    let (before, behind) = value.split_at(place);
    match behind {
        [_, word] if word.is("important") => {}
        [_, word, ..] => {
            let message = "only `!important` begins with `!`, and it ends the value";
            mistakes.push((word.at, message.to_owned()));
        }
        _ => mistakes.push((behind[0].at, "only `!important` begins with `!`".to_owned())),
    }
    before
}

/// Notes which tokens of a value are none; words are looked up if the property is known.
fn pieces(value: &[Piece<'_>], property: Option<&Property>, mistakes: &mut Vec<Mistake>) {
    let mut open = Vec::new();
    for piece in value {
        let mut mistake = |message: String| mistakes.push((piece.at, message));
        match piece.kind {
            Kind::Function => {
                let name = piece.name();
                if !is_function(name) {
                    let meant = did_you_mean("", name, vocabulary::functions().iter().copied());
                    mistake(format!("CSS has no function `{name}()`{meant}"));
                }
                open.push(name);
            }
            Kind::Open => open.push(""),
            Kind::Close => {
                open.pop();
            }
            Kind::Dimension(unit) => unit_of(piece, unit, mistakes),
            // `element(#id)` alone takes an id.
            Kind::Hash if !open.contains(&"element") && !is_hex(piece.name()) => {
                mistake(format!(
                    "`{}` is no color: it has 3, 4, 6 or 8 hexadecimal digits behind its `#`",
                    piece.text
                ));
            }
            Kind::At => mistake(format!("`{}` begins a rule, and is no value", piece.text)),
            Kind::Word if open.is_empty() => {
                if let Some(property) = property.filter(|property| !property.accepts(piece.text)) {
                    mistake(not_a_word(piece.text, property));
                }
            }
            Kind::Number if open.is_empty() && !is_zero(piece.text) => {
                if let Some(property) = property.filter(|property| !property.numbers) {
                    let name = property.name;
                    mistake(format!(
                        "`{}` needs a unit: `{name}` takes no plain number",
                        piece.text
                    ));
                }
            }
            Kind::Mark if open.is_empty() && ![",", "/"].contains(&piece.text) => {
                mistake(format!("`{}` has no place in a value", piece.text));
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

/// Each function in a value, in small letters, with what stands behind its parenthesis.
fn functions<'p>(value: &'p [Piece<'p>]) -> impl Iterator<Item = (&'p str, &'p [Piece<'p>])> {
    let functions = value.iter().enumerate().filter(|(_, piece)| piece.kind == Kind::Function);
    functions.map(|(at, piece)| (piece.name(), &value[at + 1..]))
}

fn is_function(name: &str) -> bool {
    let mut known = vocabulary::functions().iter().chain(&FUNCTIONS);
    name.starts_with('-') || known.any(|known| known.eq_ignore_ascii_case(name))
}

/// Notes a unit that there is not.
pub(crate) fn unit_of(piece: &Piece<'_>, unit: usize, mistakes: &mut Vec<Mistake>) {
    let unit_name = &piece.text[unit..];
    let mut units = UNITS.iter().chain(&RARE_UNITS).copied();
    if !units.clone().any(|known| known.eq_ignore_ascii_case(unit_name)) {
        // Of two letters one may be wrong, which is too much for so many short names.
        let swapped = |known: &&str| is_swapped(unit_name, known);
        let meant = units.find(swapped).or_else(|| nearest(unit_name, UNITS));
        let meant = meant.map_or_else(String::new, |unit| format!("; did you mean `{unit}`?"));
        mistakes.push((piece.at, format!("CSS has no unit `{unit_name}`{meant}")));
    }
}

/// Whether two words have the same letters in another order.
fn is_swapped(one: &str, other: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters = word.to_ascii_lowercase().into_bytes();
        letters.sort_unstable();
        letters
    };
    sorted(one) == sorted(other)
}

/// A length may be 0 without a unit.
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
        (0, false) => "; it has none but what every property takes, as `inherit`".to_owned(),
        (0, true) => "; it takes a color".to_owned(),
        (1..=MOST_WORDS, false) => format!("; its words are {}", property.words),
        (1..=MOST_WORDS, true) => format!("; its words are {}, and colors", property.words),
        _ => String::new(),
    };
    format!("`{name}` has no word `{word}`{meant}{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_have_as_many_digits_as_browsers_take() {
        assert!(is_hex("fff") && is_hex("12345678") && !is_hex("12345") && !is_hex("ggg"));
    }
}
