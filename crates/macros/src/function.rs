//! Parser of function items for `#[page]` and `#[service]`.

use crate::fault::Fault;
use crate::item::{split_attributes, split_commas, split_visibility};
use crate::token::{Delimiter, Token, flatten};

/// A function item, split into its parts.
pub(crate) struct Function<'t> {
    /// `doc` and `cfg` attributes, which apply to the generated value too.
    pub(crate) shared_attributes: Vec<Token>,
    pub(crate) own_attributes: Vec<Token>,
    pub(crate) visibility: &'t [Token],
    /// From `async` or `fn` to the closing brace of the body.
    pub(crate) whole: &'t [Token],
    pub(crate) is_async: bool,
    pub(crate) name: &'t Token,
    pub(crate) arguments: Vec<Argument<'t>>,
    /// The return type; empty without an arrow.
    pub(crate) return_type: &'t [Token],
}

pub(crate) struct Argument<'t> {
    pub(crate) name: String,
    pub(crate) kind: &'t [Token],
}

/// The use of the function, for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Page,
    Service,
}

impl<'t> Function<'t> {
    /// Parses a function; `None` if the item is not a function.
    pub(crate) fn read(item: &'t [Token], role: Role, faults: &mut Vec<Fault>) -> Option<Self> {
        let (attributes, rest) = split_attributes(item);
        let (visibility, whole) = split_visibility(rest);
        let (is_async, function) = match whole {
            [word, after @ ..] if word.is("async") => (true, after),
            _ => (false, whole),
        };
        let [word, name, after @ ..] = function else {
            faults.push(role.not_a_function(whole.first()));
            return None;
        };
        if !word.is("fn") || !name.is_word() {
            faults.push(role.not_a_function(Some(word)));
            return None;
        }
        if let Some(angle) = after.first().filter(|first| first.is("<")) {
            faults.push(Fault::new(angle, role.not_generic()));
        }
        let list = after.iter().position(|token| token.group(Delimiter::Parenthesis).is_some());
        let (list, after_list) = match list {
            Some(place) => (&after[place], &after[place + 1..]),
            None => (name, &[][..]),
        };
        let list = list.group(Delimiter::Parenthesis).unwrap_or_default();
        let arguments = split_commas(list)
            .into_iter()
            .filter_map(|argument| role.read(argument).map_err(|fault| faults.push(fault)).ok());
        let arguments = arguments.collect();
        let is_shared = |attribute: &&[Token]| {
            attribute[1]
                .group(Delimiter::Bracket)
                .and_then(<[Token]>::first)
                .is_some_and(|word| word.is("doc") || word.is("cfg"))
        };
        let (shared, own): (Vec<_>, Vec<_>) = attributes.into_iter().partition(is_shared);
        Some(Self {
            shared_attributes: shared.concat(),
            own_attributes: own.concat(),
            visibility,
            whole,
            is_async,
            name,
            arguments,
            return_type: return_type(after_list),
        })
    }

    /// The name without `r#`.
    pub(crate) fn plain_name(&self) -> &str {
        self.name.text.trim_start_matches("r#")
    }
}

/// The tokens between the arrow and the body.
fn return_type(after_list: &[Token]) -> &[Token] {
    let [dash, angle, kind @ ..] = after_list else { return &[] };
    if !dash.is("-") || !angle.is(">") {
        return &[];
    }
    let ends = |token: &Token| token.group(Delimiter::Brace).is_some() || token.is("where");
    &kind[..kind.iter().position(ends).unwrap_or(kind.len())]
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Service => "service",
        }
    }

    fn not_a_function(self, found: Option<&Token>) -> Fault {
        let origin = found.map_or(Fault::WHOLE, |token| token.origin);
        let word = self.word();
        let message = format!("a {word} is a function: `async fn name(..)` or `fn name(..)`");
        Fault { origin, message }
    }

    fn not_generic(self) -> String {
        format!("a {} cannot be generic", self.word())
    }

    fn read(self, argument: &[Token]) -> Result<Argument<'_>, Fault> {
        let (_, argument) = split_attributes(argument);
        let is_colon = |(index, token): (usize, &Token)| {
            let double = |other: Option<&Token>| other.is_some_and(|other| other.is(":"));
            token.is(":")
                && !double(argument.get(index + 1))
                && !double(index.checked_sub(1).map(|before| &argument[before]))
        };
        let unsupported = |token| {
            let message = match self {
                Self::Page => {
                    "an argument of a page is a name or a wrapped name: `name` or `Query(name)`"
                }
                Self::Service => "an argument of a service has a name and a type: `name: Text`",
            };
            Fault::new(token, message)
        };
        let colon = argument.iter().enumerate().position(is_colon);
        let (pattern, kind) =
            colon.map_or((argument, &[][..]), |colon| (&argument[..colon], &argument[colon + 1..]));
        if let Some(receiver) = pattern.iter().find(|token| token.is("self")) {
            let message = match self {
                Self::Page => "a page cannot take `self`: its arguments come from the request",
                Self::Service => "a service cannot take `self`: its arguments come from the call",
            };
            return Err(Fault::new(receiver, message));
        }
        let Some(first) = pattern.first().filter(|_| !kind.is_empty()) else {
            // The compiler reports this too, with a better message.
            return Err(unsupported(&argument[0]));
        };
        if let Some(generic) = kind.iter().find(|token| token.is("impl")) {
            return Err(Fault::new(generic, self.not_generic()));
        }
        let inner = match pattern {
            [wrapper @ .., last] if self == Self::Page => {
                match last.group(Delimiter::Parenthesis) {
                    Some(inner) if !wrapper.is_empty() => inner,
                    _ => pattern,
                }
            }
            _ => pattern,
        };
        let name = match inner {
            [mutable, name] if mutable.is("mut") && name.is_word() => name,
            [name] if name.is_word() && !name.is("_") => name,
            _ => return Err(unsupported(first)),
        };
        Ok(Argument { name: name.text.trim_start_matches("r#").to_owned(), kind })
    }
}

/// A type as written in the source, for messages and logs.
pub(crate) fn spelled(kind: &[Token]) -> String {
    let mut text = String::new();
    for token in flatten(kind) {
        if matches!(&*token.text, "mut" | "dyn") || text.ends_with(',') {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}
