//! `action!`: a closure in a page becomes a registered function and a value that refers to it.

use crate::access::{ACCESS_FORMS, Access};
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::function::spelled;
use crate::item::split_commas;
use crate::literal;
use crate::token::{Delimiter, Kind, Token};

/// Expands `action!(tokens)`. The first token is a bracket with the path of the `bine` crate.
pub(crate) fn action(tokens: &[Token]) -> Expansion {
    let mut expansion = Expansion::default();
    let Some((krate, action)) = tokens.split_first() else { return expansion };
    let krate = krate.group(Delimiter::Bracket).unwrap_or_default();
    let mut emitter = ActionEmitter { expansion: &mut expansion, krate };
    match Action::read(action) {
        Ok(read) => emitter.action(&read, hash(action)),
        Err(fault) => {
            emitter.expansion.faults.push(fault);
            emitter.placeholder();
        }
    }
    expansion
}

/// A parsed action.
struct Action<'t> {
    /// A string literal.
    name: Option<&'t Token>,
    access: Option<Access<'t>>,
    captures: Vec<Named<'t>>,
    /// The pattern of the closure's first argument.
    call: &'t [Token],
    arguments: Vec<Named<'t>>,
    /// The return type; empty without an arrow.
    return_type: &'t [Token],
    body: &'t [Token],
}

/// `name: Type`, or `name: Type = value`.
struct Named<'t> {
    /// An identifier, optionally after `mut`.
    pattern: &'t [Token],
    kind: &'t [Token],
    /// The captured expression; if empty, the variable of that name.
    value: &'t [Token],
}

const SHAPE: &str = "an action is a closure, optionally after a list of captures: `action!([id: Id<Row>] |call, text: Text| ..)`";

impl<'t> Action<'t> {
    fn read(tokens: &'t [Token]) -> Result<Self, Fault> {
        let (ActionOptions { name, access }, tokens) = ActionOptions::read(tokens)?;
        let (captures, closure) = match tokens {
            [first, rest @ ..] => match first.group(Delimiter::Bracket) {
                Some(captures) => (captures, rest),
                None => (&[][..], tokens),
            },
            [] => (&[][..], tokens),
        };
        let captures = split_commas(captures).into_iter().map(capture);
        let captures = captures.collect::<Result<_, _>>()?;
        let whole = |message: &str| Fault::at(Fault::WHOLE, message);
        let (first, rest) = closure.split_first().ok_or_else(|| whole(SHAPE))?;
        if first.is("async") || first.is("move") {
            let message = "an action is a transaction: it is not `async`, and owns its captures without `move`; a service can await";
            return Err(Fault::new(first, message));
        }
        if !first.is("|") {
            return Err(Fault::new(first, SHAPE));
        }
        let end = rest.iter().position(|token| token.is("|")).ok_or_else(|| whole(SHAPE))?;
        let (list, body) = (split_commas(&rest[..end]), &rest[end + 1..]);
        let Some((call, arguments)) = list.split_first() else {
            return Err(Fault::new(
                first,
                "the first argument of an action is its call: `|call| ..`",
            ));
        };
        if !matches!(call, [word] if word.is_word()) {
            let message = "the first argument is the call, without a type: `|call, text: Text| ..`";
            return Err(Fault::new(&call[0], message));
        }
        let arguments = arguments.iter().map(|argument| self::argument(argument));
        let arguments = arguments.collect::<Result<_, _>>()?;
        let (return_type, body) = match body {
            [dash, angle, rest @ ..] if dash.is("-") && angle.is(">") => {
                let block = rest.iter().position(|token| token.group(Delimiter::Brace).is_some());
                rest.split_at(block.unwrap_or(rest.len()))
            }
            _ => (&[][..], body),
        };
        if body.is_empty() {
            return Err(Fault::new(first, SHAPE));
        }
        Ok(Self { name, access, captures, call, arguments, return_type, body })
    }
}

/// The options before the closure: `name = "..",` and `who = ..,`.
#[derive(Default)]
struct ActionOptions<'t> {
    name: Option<&'t Token>,
    access: Option<Access<'t>>,
}

impl<'t> ActionOptions<'t> {
    fn read(mut tokens: &'t [Token]) -> Result<(Self, &'t [Token]), Fault> {
        let mut options = Self::default();
        while let [word, equals, rest @ ..] = tokens
            && equals.is("=")
            && let Some(comma) = rest.iter().position(|token| token.is(","))
        {
            let value = &rest[..comma];
            match value {
                [name] if word.is("name") && options.name.is_none() => {
                    options.name = Some(valid_name(name)?);
                }
                _ if word.is("who") && options.access.is_none() => {
                    let fault = || {
                        Fault::new(
                            value.first().unwrap_or(word),
                            format!("an action {ACCESS_FORMS}"),
                        )
                    };
                    options.access = Some(Access::read(value).ok_or_else(fault)?);
                }
                _ => break,
            }
            tokens = &rest[comma + 1..];
        }
        Ok((options, tokens))
    }
}

fn valid_name(name: &Token) -> Result<&Token, Fault> {
    let is_plain = |text: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=64).contains(&text.len()) && text.bytes().all(is_letter)
    };
    match literal::string(name) {
        Some(Ok(text)) if is_plain(&text) => Ok(name),
        _ => {
            let message = "the name of an action is a string of 1 to 64 letters, digits, `-` and `_`: it is part of a URL";
            Err(Fault::new(name, message))
        }
    }
}

fn capture(tokens: &[Token]) -> Result<Named<'_>, Fault> {
    let message = "a capture has a name and a type: `id: Id<Row>`, or `id: Id<Row> = row.id`";
    let named = named(tokens).filter(|named| named.pattern.len() == 1);
    named.ok_or_else(|| Fault::new(&tokens[0], message))
}

fn argument(tokens: &[Token]) -> Result<Named<'_>, Fault> {
    let message = "an argument of an action has a name and a type: `text: Text`";
    let named = named(tokens).filter(|named| named.value.is_empty());
    named.ok_or_else(|| Fault::new(&tokens[0], message))
}

fn named(tokens: &[Token]) -> Option<Named<'_>> {
    let colon = tokens.iter().position(|token| token.is(":"))?;
    let (pattern, kind) = (&tokens[..colon], &tokens[colon + 1..]);
    let equals = kind.iter().position(|token| token.is("=")).unwrap_or(kind.len());
    let (kind, value) = (&kind[..equals], kind.get(equals + 1..).unwrap_or_default());
    let is_name = match pattern {
        [name] => name.is_word() && !name.is("_"),
        [mutable, name] => mutable.is("mut") && name.is_word(),
        _ => false,
    };
    (is_name && !kind.is_empty()).then_some(Named { pattern, kind, value })
}

/// Hashes the tokens without white space, so that formatting does not change the hash (FNV-1a).
fn hash(tokens: &[Token]) -> u64 {
    fn add(hash: u64, text: &str) -> u64 {
        let bytes = text.bytes().chain([0]);
        bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
    fn of(hash: u64, tokens: &[Token]) -> u64 {
        tokens.iter().fold(hash, |hash, token| match &token.kind {
            Kind::Group(group) => {
                let delimiter = format!("{:?}", group.delimiter);
                add(of(add(hash, &delimiter), &group.tokens), &delimiter)
            }
            _ => add(hash, &token.text),
        })
    }
    of(0xcbf2_9ce4_8422_2325, tokens)
}

struct ActionEmitter<'t, 'e> {
    expansion: &'e mut Expansion,
    krate: &'t [Token],
}

impl ActionEmitter<'_, '_> {
    fn action(&mut self, action: &Action<'_>, hash: u64) {
        self.code("{ static __ACTION: ");
        self.private("Declaration = ");
        self.private("Declaration { module: ::core::module_path!(), line: ::core::line!(), name: ::core::option::Option::");
        match action.name {
            Some(name) => {
                self.code("Some(");
                self.expansion.run(std::slice::from_ref(name));
                self.code(")");
            }
            None => self.code("None"),
        }
        self.code(&format!(", hash: {hash:#x}_u64, captures: "));
        self.names(&action.captures);
        self.code(", arguments: ");
        self.names(&action.arguments);
        self.code(", rule: ::core::option::Option::");
        self.rule(action.access);
        self.code(", route: |__own| __own.changing(");
        self.closure(action);
        self.code(") }; ");
        self.private("submit! { ");
        self.private("Linked(&__ACTION) } ");
        self.private("Action::new(&__ACTION, &[");
        for Named { pattern, kind, value } in &action.captures {
            self.private("captured::<");
            self.expansion.run(kind);
            self.code(">(&(");
            self.expansion.run(if value.is_empty() { pattern } else { value });
            self.code(")), ");
        }
        self.code("]) }");
    }

    fn rule(&mut self, access: Option<Access<'_>>) {
        let Some(access) = access else { return self.code("None") };
        self.code("Some(");
        match access {
            Access::Anyone => self.private("Rule::ANYONE"),
            Access::Users => self.private("Rule::USERS"),
            Access::Rule(path) => drop(self.expansion.run(path)),
        }
        self.code(")");
    }

    /// Emits a value of the right type in place of a faulty action.
    fn placeholder(&mut self) {
        self.code("{ ");
        self.private("Action::new(::core::unreachable!(), &[]) }");
    }

    fn names(&mut self, named: &[Named<'_>]) {
        self.code("&[");
        for Named { pattern, kind, .. } in named {
            let name = pattern.last().map_or("", |name| name.text.trim_start_matches("r#"));
            self.code("(");
            self.expansion.string(name);
            self.code(", ");
            self.expansion.string(&spelled(kind));
            self.code("), ");
        }
        self.code("]");
    }

    fn closure(&mut self, action: &Action<'_>) {
        self.code("|");
        self.expansion.run(action.call);
        self.code(": &mut ");
        self.private("Call, ");
        self.tuple(&action.captures);
        self.code(", ");
        self.tuple(&action.arguments);
        self.code("| ");
        if !action.return_type.is_empty() {
            self.code("-> ");
            self.expansion.run(action.return_type);
            self.expansion.run(action.body);
        } else if may_fail(action.body) {
            // Nothing else determines the error type of `?`.
            self.code("-> ::core::result::Result<_, ");
            self.private("Error> { ");
            self.expansion.run(action.body);
            self.code("}");
        } else {
            self.expansion.run(action.body);
        }
    }

    fn tuple(&mut self, named: &[Named<'_>]) {
        self.code("(");
        for Named { pattern, .. } in named {
            self.expansion.run(pattern);
            self.code(", ");
        }
        self.code("): (");
        for Named { kind, .. } in named {
            self.expansion.run(kind);
            self.code(", ");
        }
        self.code(")");
    }

    /// Emits the path of an item that only macros use.
    fn private(&mut self, name: &str) {
        self.expansion.run(self.krate);
        self.code("::__private::");
        self.code(name);
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

/// Whether the body returns a `Result`: it contains `?`, or ends in `Ok(..)` or `Err(..)`.
fn may_fail(body: &[Token]) -> bool {
    let ends_in_result = match body {
        [.., word, list] if list.group(Delimiter::Parenthesis).is_some() => {
            word.is("Ok") || word.is("Err")
        }
        [block] => block.group(Delimiter::Brace).is_some_and(may_fail),
        _ => false,
    };
    ends_in_result || has_question_mark(body)
}

fn has_question_mark(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| match &token.kind {
        Kind::Group(group) => has_question_mark(&group.tokens),
        _ => token.is("?"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn expand(source: &str) -> (Sample, Expansion) {
        let sample = Sample::new(&format!("[bine] {source}"));
        let expansion = action(&sample.tokens);
        (sample, expansion)
    }

    #[track_caller]
    fn check_fault(source: &str, expected: &str) {
        let (sample, expansion) = expand(source);
        assert_eq!(sample.report(&expansion.faults), expected);
    }

    /// Checks for `expected` in the expansion, without white space.
    #[track_caller]
    fn check_spelled(source: &str, expected: &str) {
        let (sample, expansion) = expand(source);
        let words = |text: &str| text.split_whitespace().collect::<String>();
        let spelled = words(&sample.spell(&expansion));
        assert!(spelled.contains(&words(expected)), "{spelled}");
    }

    #[test]
    fn expands_to_a_function_of_captures_and_arguments() {
        let source =
            "[id: Id<Row>, more: u8 = row.more] |call, mut text: Text| call.f(id, more, text)";
        check_spelled(
            source,
            "|call: &mut bine::__private::Call, (id, more,): (Id<Row>, u8,), (mut text,): (Text,)| call.f(id, more, text)",
        );
        check_spelled(
            source,
            "bine::__private::Action::new(&__ACTION, &[bine::__private::captured::<Id<Row>>(&(id)), bine::__private::captured::<u8>(&(row.more)),])",
        );
        check_spelled(
            source,
            r#"captures: &[("id", "Id<Row>"), ("more", "u8"),], arguments: &[("text", "Text"),]"#,
        );
        check_spelled(r#"name = "a", |call| ()"#, r#"name: ::core::option::Option::Some("a")"#);
    }

    #[test]
    fn accepts_an_access_rule() {
        check_spelled("|call| ()", "rule: ::core::option::Option::None,");
        let cases = [
            (r#""user""#, "bine::__private::Rule::USERS"),
            (r#""anyone""#, "bine::__private::Rule::ANYONE"),
            ("rules::BREWERS", "rules::BREWERS"),
        ];
        for (who, rule) in cases {
            let expected = format!("rule: ::core::option::Option::Some({rule}),");
            check_spelled(&format!("who = {who}, |call| ()"), &expected);
            check_spelled(&format!("who = {who}, name = \"a\", [b: u8] |call| ()"), &expected);
            check_spelled(&format!("name = \"a\", who = {who}, |call| ()"), &expected);
        }
        check_fault("who = \"admin\", |call| f()", &format!("\"admin\": an action {ACCESS_FORMS}"));
        check_fault("who = , |call| f()", &format!("who: an action {ACCESS_FORMS}"));
        let twice = "who = \"user\", who = \"user\", |call| f()";
        check_fault(twice, &format!("who: {SHAPE}"));
    }

    #[test]
    fn fallible_body_has_an_error_type() {
        let fails = "-> ::core::result::Result<_, bine::__private::Error> {";
        for body in
            ["{ f()?; Ok(()) }", "Ok(())", "{ if a { f(g(1)?) } else { h } }", "{ g(); Err(x) }"]
        {
            check_spelled(&format!("|call| {body}"), &format!("{fails} {body} }}"));
        }
        for body in ["call.f()", "{ f(); }", "match f() { Ok(x) => x, Err(_) => 1 }"] {
            let (sample, expansion) = expand(&format!("|call| {body}"));
            assert!(!sample.spell(&expansion).contains("result::Result"), "{body}");
        }
        check_spelled("|call| -> Result<u8, E> { f()? }", "| -> Result<u8, E> { f()? }");
    }

    #[test]
    fn hash_ignores_white_space() {
        let of = |source: &str| hash(&Sample::new(source).tokens);
        assert_eq!(of("[a: u8] |call| f(a)"), of("[a:u8]\n  |call|  f( a )"));
        let others =
            ["[a: u8] |call| f(b)", "[a: u16] |call| f(a)", "|call| f(a)", "[a: u8] |call| f[a]"];
        for other in others {
            assert_ne!(of("[a: u8] |call| f(a)"), of(other), "{other}");
        }
    }

    #[test]
    fn rejects_malformed_actions() {
        check_fault("|| f()", "|: the first argument of an action is its call: `|call| ..`");
        check_fault("f", &format!("f: {SHAPE}"));
        check_fault("|call|", &format!("|: {SHAPE}"));
        let call = "the first argument is the call, without a type: `|call, text: Text| ..`";
        check_fault("|call: &mut Call| f()", &format!("call: {call}"));
        check_fault(
            "|call, text| f()",
            "text: an argument of an action has a name and a type: `text: Text`",
        );
        check_fault(
            "[id] |call| f()",
            "id: a capture has a name and a type: `id: Id<Row>`, or `id: Id<Row> = row.id`",
        );
        let moved = "an action is a transaction: it is not `async`, and owns its captures without `move`; a service can await";
        check_fault("async move |call| f()", &format!("async: {moved}"));
        let named = "the name of an action is a string of 1 to 64 letters, digits, `-` and `_`: it is part of a URL";
        check_fault("name = \"a b\", |call| f()", &format!("\"a b\": {named}"));
    }
}
