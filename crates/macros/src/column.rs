//! Checks of column options against the column's type, as far as the type's name reveals it.

use crate::fault::Fault;
use crate::literal;
use crate::token::Token;

/// The content of a column, recognized by the name of its type.
enum Known {
    Text,
    Bytes,
    Number,
    Bool,
}

/// The expected type of a default.
pub(crate) enum Expected<'t> {
    /// A string, where the column owns a `String`.
    Text,
    /// A value of the column's type.
    Same(&'t [Token]),
}

/// The expected type of a column's default, if the column's type is known.
pub(crate) fn default_of(kind: &[Token]) -> Option<Expected<'_>> {
    let kind = without_option(kind);
    match known(kind)? {
        Known::Text => Some(Expected::Text),
        Known::Bool => Some(Expected::Same(kind)),
        // A float column accepts an integer too, so only integer types are fixed.
        Known::Number => limits(&kind[0].text).map(|_| Expected::Same(kind)),
        Known::Bytes => None,
    }
}

/// Reports an invalid default for which the compiler has no good message.
pub(crate) fn check_default(value: &[Token], kind: &[Token]) -> Option<Fault> {
    if let [only] = value
        && only.is("None")
    {
        let why = "an optional column needs no default `None`, and other columns need a value";
        return Some(Fault::new(only, why));
    }
    let kind = without_option(kind);
    let why = match known(kind)? {
        Known::Bytes => {
            "bytes have no default: make the column optional, so that existing rows have no value"
                .to_owned()
        }
        Known::Number => {
            let (sign, number) = match value {
                [minus, number] if minus.is("-") => (-1, number),
                [number] => (1, number),
                _ => return None,
            };
            let own = kind[0].text.as_str();
            match (limits(own), number.text.replace('_', "").parse::<i128>()) {
                (Some((least, most)), Ok(number)) if !(least..=most).contains(&(sign * number)) => {
                    format!("`{own}` is a whole number from {least} to {most}")
                }
                (None, _)
                    if literal::string(number).is_some()
                        || number.is("true")
                        || number.is("false") =>
                {
                    format!("`{own}` is a number: `default = 0.5`")
                }
                _ => return None,
            }
        }
        Known::Text | Known::Bool => return None,
    };
    Some(Fault::new(&value[0], why))
}

/// The range of an integer type; `None` for other types.
fn limits(kind: &str) -> Option<(i128, i128)> {
    Some(match kind {
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" => (0, u64::MAX.into()),
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

/// Checks a limit: `length` or `range`.
pub(crate) fn check_limit(word: &Token, value: &[Token], kind: &[Token]) -> Option<Fault> {
    let is_length = word.is("length");
    let example = if is_length { "length = 1..=80" } else { "range = 0..=5" };
    let option = word.text.as_str();
    let Some(first) = value.first() else {
        return Some(Fault::new(word, format!("`{option}` has a value: `{example}`")));
    };
    let dots =
        value.windows(3).position(|mark| mark[0].is(".") && mark[1].is(".") && mark[2].is("="));
    let Some(dots) = dots.filter(|dots| *dots > 0 && dots + 3 < value.len()) else {
        let why = format!("`{option}` is an inclusive range: `{example}`");
        return Some(Fault::new(first, why));
    };
    if let ([from], [until]) = (&value[..dots], &value[dots + 3..])
        && let (Ok(least), Ok(most)) = (from.text.parse::<u64>(), until.text.parse::<u64>())
        && least > most
    {
        return Some(Fault::new(first, format!("the range is empty: from {least} to {most}")));
    }
    let why = match known(without_option(kind))? {
        Known::Text | Known::Bytes if is_length => return None,
        Known::Number if !is_length => return None,
        Known::Text | Known::Bytes => "use `length` for text and bytes",
        Known::Number => "use `range` for numbers",
        Known::Bool => "a `bool` has no limits",
    };
    Some(Fault::new(word, why))
}

/// The variant of `OnRemove` that a column's `on_remove` names.
pub(crate) fn on_remove(
    word: &Token,
    value: &[Token],
    kind: &[Token],
) -> Result<&'static str, Fault> {
    let is_reference =
        |kind: &[Token]| matches!(kind, [id, open, ..] if id.is("Id") && open.is("<"));
    let text = match value {
        [only] => literal::string(only).and_then(Result::ok),
        _ => None,
    };
    let rule = match text.as_deref() {
        Some("cascade") => "Cascade",
        Some("set_none") => "SetNone",
        Some("reject") => "Reject",
        _ => {
            let why = "`on_remove` is \"cascade\", \"set_none\" or \"reject\"";
            return Err(Fault::new(value.first().unwrap_or(word), why));
        }
    };
    // The store checks an alias of a type at the start.
    if known(without_option(kind)).is_some() {
        let why = "`on_remove` is an option of a column that refers to rows: `Id<Row>`";
        return Err(Fault::new(word, why));
    }
    if rule == "SetNone" && is_reference(kind) {
        let why = "the column becomes `None` when its row is removed: use `Option<Id<Row>>`";
        return Err(Fault::new(&value[0], why));
    }
    Ok(rule)
}

fn without_option(kind: &[Token]) -> &[Token] {
    match kind {
        [option, open, inner @ .., close]
            if option.is("Option") && open.is("<") && close.is(">") =>
        {
            inner
        }
        _ => kind,
    }
}

fn known(kind: &[Token]) -> Option<Known> {
    match kind {
        [only] if only.is("String") || only.is("Text") => Some(Known::Text),
        [only] if only.is("bool") => Some(Known::Bool),
        [only] if only.is("f32") || only.is("f64") => Some(Known::Number),
        [only] if only.is_word() && limits(&only.text).is_some() => Some(Known::Number),
        [list, open, of, close] => {
            let is_bytes = list.is("Vec") && open.is("<") && of.is("u8") && close.is(">");
            is_bytes.then_some(Known::Bytes)
        }
        _ => None,
    }
}
