//! Local variables of a function whose name a form of it uses as its address.
//!
//! `html!` cannot see variables, and looks the name up in the module, where it may be a service. The
//! start of a program must not refuse such a form.

use crate::expansion::Expansion;
use crate::token::{Delimiter, Token};

/// Registers with the linker the names in `action={name}` and `formaction={name}` that may be local
/// variables.
pub(crate) fn register(function: &[Token], krate: Option<&[Token]>, to: &mut Expansion) {
    let mut names = Vec::new();
    find_addresses(function, &mut names);
    names.retain(|name| may_declare(function, name));
    for name in names {
        let private = |to: &mut Expansion, item: &str| {
            match krate {
                Some(krate) => drop(to.run(krate)),
                None => to.code(" ::bine"),
            }
            to.code("::__private::");
            to.code(item);
        };
        to.code("const _: () = { fn __place() {}");
        private(to, "submit! {");
        private(to, "LocalVariable { place: || ::core::any::type_name_of_val(&__place), name:");
        to.string(name);
        to.code("} } };");
    }
}

/// Adds each single name that is the value of an address once.
fn find_addresses<'t>(tokens: &'t [Token], names: &mut Vec<&'t str>) {
    for place in 0..tokens.len() {
        if let Some([name]) = address(tokens, place)
            && name.is_word()
            && !names.contains(&&*name.text)
        {
            names.push(&name.text);
        } else if let Some(inner) = inside(&tokens[place]) {
            find_addresses(inner, names);
        }
    }
}

/// Whether the name is where a pattern may declare it: after `let`, `for`, `|` and the like, or
/// first in a list or a block. It may also be an expression there.
fn may_declare(tokens: &[Token], name: &str) -> bool {
    (0..tokens.len()).any(|place| {
        if address(tokens, place).is_some() {
            return false;
        }
        if let Some(inner) = inside(&tokens[place]) {
            return may_declare(inner, name);
        }
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        let declares = |before: &Token| {
            ["let", "mut", "ref", "for", "|", ",", "&", "@"].iter().any(|known| before.is(known))
        };
        tokens[place].is(name) && before.is_none_or(declares)
    })
}

/// The tokens of the group at this place, if it is the value of `action` or `formaction`.
fn address(tokens: &[Token], place: usize) -> Option<&[Token]> {
    let [word, equals] = tokens.get(place.checked_sub(2)?..place)? else { return None };
    let is_address = (word.is("action") || word.is("formaction")) && equals.is("=");
    tokens[place].group(Delimiter::Brace).filter(|_| is_address)
}

fn inside(token: &Token) -> Option<&[Token]> {
    [Delimiter::Parenthesis, Delimiter::Bracket, Delimiter::Brace, Delimiter::Invisible]
        .into_iter()
        .find_map(|delimiter| token.group(delimiter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[track_caller]
    fn check(source: &str, expected: bool) {
        let sample = Sample::new(source);
        let mut to = Expansion::default();
        register(&sample.tokens, None, &mut to);
        assert_eq!(to.code.contains("name:\"add\""), expected, "{source}\n{}", to.code);
    }

    #[test]
    fn finds_names_that_patterns_declare() {
        for pattern in [
            "fn f() { let add = 1; html!(<form action={add}></form>) }",
            "fn f(add: Text) { html!(<form action={add}></form>) }",
            "fn f(a: A, Query(add): Query<Text>) { html!(<form action={add}></form>) }",
            "fn f() { html!({for add in b { <button formaction={add}></button> }}) }",
            "fn f() { html!({let mut add = 1;}<form action={add}></form>) }",
            "fn f() { html!({if let Some(add) = b { <form action={add}></form> }}) }",
            "fn f() { let Shop { name, add } = b; html!(<form action={add}></form>) }",
            "fn f() { g(|add| html!(<form action={add}></form>)) }",
        ] {
            check(pattern, true);
        }
    }

    #[test]
    fn ignores_names_that_nothing_declares() {
        for other in [
            "fn f() { html!(<form action={add}><button>\"a\" add</button></form>) }",
            "fn f() { let a = shop.add + shop::add; html!(<form action={add}></form>) }",
            "fn f() { let add = 1; html!(<form action={shop::add}></form>) }",
            "fn f(add: Text) { html!(<a href={add}>a</a>) }",
        ] {
            check(other, false);
        }
    }
}
