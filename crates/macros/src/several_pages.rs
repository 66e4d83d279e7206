//! Functions with several `html!`: each `html!` has its own type, and a function returns one type.
//! In a page each value becomes a response, in a layout a variant of `OneOf`.
//!
//! A function with one `html!` stays as it is. A function with several would not compile, so that
//! only such functions pay for a response or a variant.

use crate::expansion::Expansion;
use crate::function::Function;
use crate::token::{Delimiter, Token};

/// Emits the function of a page. `private` emits the path of an item that only macros use.
pub(crate) fn emit(
    function: &Function<'_>,
    to: &mut Expansion,
    private: &dyn Fn(&mut Expansion, &str),
) {
    let page = function
        .return_type
        .windows(2)
        .position(|two| two[0].is("impl") && (two[1].is("Page") || two[1].is("Respond")));
    let Some((body, head)) = function.whole.split_last() else { return };
    let is_only = match function.return_type {
        [_, _] => true,
        [result, open, _, _, comma, .., close] => {
            result.is("Result") && open.is("<") && comma.is(",") && close.is(">")
        }
        _ => false,
    };
    let (Some(page), Some(block), true) = (page, body.group(Delimiter::Brace), is_only) else {
        to.run(function.whole);
        return;
    };
    if count(block) < 2 {
        to.run(function.whole);
        return;
    }
    let before = head.len() - function.return_type.len() + page;
    to.run(&head[..before]);
    private(to, "Response");
    if before + 2 < head.len() {
        to.run(&head[before + 2..]);
    }
    to.code("{");
    let mut writer = ValueWriter {
        to,
        before: &mut |to, _, length| {
            // `html!(..)` alone has no settings.
            private(to, if length == 3 { "Response::page(" } else { "Response::from(" });
        },
        after: &mut |to, _| to.code(")"),
        values: 0,
    };
    writer.write(block);
    to.code("}");
}

/// Emits a function that returns `impl Page` and is no page, such as a layout: its values become
/// variants of one type, without an allocation.
pub(crate) fn emit_variants(
    whole: &[Token],
    to: &mut Expansion,
    private: &dyn Fn(&mut Expansion, &str),
) {
    let Some((body, head)) = whole.split_last() else { return };
    let values = body.group(Delimiter::Brace).map_or(0, count);
    let Some(block) = body.group(Delimiter::Brace).filter(|_| values > 1) else {
        to.run(whole);
        return;
    };
    to.run(head);
    to.code("{");
    let before = &mut |to: &mut Expansion, value: usize, _| {
        for _ in 0..value {
            private(to, "OneOf::Other(");
        }
        if value + 1 < values {
            private(to, "OneOf::First(");
        }
    };
    let after = &mut |to: &mut Expansion, value: usize| {
        (0..(value + 1).min(values - 1)).for_each(|_| to.code(")"));
    };
    ValueWriter { to, before, after, values: 0 }.write(block);
    to.code("}");
}

/// The number of `html!` that are values of the function.
fn count(tokens: &[Token]) -> usize {
    let each = (0..tokens.len()).map(|place| match part(tokens, place) {
        BodyPart::Page(_) => 1,
        BodyPart::Inside(inner, _) => count(inner),
        BodyPart::Other => 0,
    });
    each.sum()
}

/// Writes a body with code around each value.
struct ValueWriter<'w> {
    to: &'w mut Expansion,
    /// Writes the code before the value of this index with this number of tokens.
    before: &'w mut dyn FnMut(&mut Expansion, usize, usize),
    after: &'w mut dyn FnMut(&mut Expansion, usize),
    /// The number of values so far.
    values: usize,
}

impl ValueWriter<'_> {
    fn write(&mut self, tokens: &[Token]) {
        let (mut place, mut others) = (0, 0);
        while place < tokens.len() {
            let part = part(tokens, place);
            if others < place && !matches!(part, BodyPart::Other) {
                self.to.run(&tokens[others..place]);
            }
            match part {
                BodyPart::Page(length) => {
                    (self.before)(self.to, self.values, length);
                    self.to.run(&tokens[place..place + length]);
                    (self.after)(self.to, self.values);
                    self.values += 1;
                    place += length;
                    others = place;
                }
                BodyPart::Inside(inner, [open, close]) => {
                    self.to.code(open);
                    self.write(inner);
                    self.to.code(close);
                    place += 1;
                    others = place;
                }
                BodyPart::Other => place += 1,
            }
        }
        if others < tokens.len() {
            self.to.run(&tokens[others..]);
        }
    }
}

/// A part of a function's body.
enum BodyPart<'t> {
    /// An `html!` with this number of tokens, which is a value of the function.
    Page(usize),
    /// A group that may contain such values, and its delimiters.
    Inside(&'t [Token], [&'static str; 2]),
    Other,
}

fn part(tokens: &[Token], place: usize) -> BodyPart<'_> {
    let before = place.checked_sub(1).map(|before| &tokens[before]);
    let token = &tokens[place];
    if let Some(inner) = token.group(Delimiter::Parenthesis) {
        let is_result = before.is_some_and(|before| before.is("Ok"));
        return if is_result { BodyPart::Inside(inner, ["(", ")"]) } else { BodyPart::Other };
    }
    if let Some(inner) = token.group(Delimiter::Brace) {
        let is_value = is_control_flow(tokens, place);
        return if is_value { BodyPart::Inside(inner, ["{", "}"]) } else { BodyPart::Other };
    }
    let starts = before.is_none_or(|before| {
        before.is(";")
            || before.is("return")
            || before.group(Delimiter::Brace).is_some()
            || before.is(">") && place > 1 && tokens[place - 2].is("=")
    });
    match page_length(&tokens[place..]) {
        Some(length) if starts => BodyPart::Page(length),
        _ => BodyPart::Other,
    }
}

/// The length of `html!(..)` with calls such as `.with_title(..)`, if nothing else follows it.
fn page_length(tokens: &[Token]) -> Option<usize> {
    let [html, mark, _, rest @ ..] = tokens else { return None };
    if !html.is("html") || !mark.is("!") {
        return None;
    }
    let mut length = 3;
    let mut rest = rest;
    while let [dot, name, list, after @ ..] = rest
        && dot.is(".")
        && name.text.starts_with("with_")
        && list.group(Delimiter::Parenthesis).is_some()
    {
        (length, rest) = (length + 3, after);
    }
    let is_end = match rest {
        [] => true,
        [next, ..] => next.is(";") || next.is(",") || next.is_word(),
    };
    is_end.then_some(length)
}

/// Whether the block at this place belongs to `if`, `else`, `match`, a loop or an arm, and not to a
/// value that a variable keeps, to a closure or to an item.
fn is_control_flow(tokens: &[Token], place: usize) -> bool {
    let start = tokens[..place].iter().rposition(|token| token.is(";")).map_or(0, |end| end + 1);
    let statement = &tokens[start..place];
    let is_binding = statement.iter().enumerate().any(|(place, token)| {
        let before = place.checked_sub(1).map(|before| &statement[before]);
        let is_condition =
            before.is_some_and(|before| ["if", "while", "&"].iter().any(|word| before.is(word)));
        token.is("let") && !is_condition
    });
    let last = statement.iter().rposition(|token| token.group(Delimiter::Brace).is_some());
    let own = &statement[last.map_or(0, |last| last + 1)..];
    let is_other = |(place, token): (usize, &Token)| {
        // An earlier arm of the `match` may be an `html!`.
        let is_page = token.is("!") && place > 0 && own[place - 1].is("html");
        let others = ["|", "fn", "async", "!", "move", "unsafe", "const"];
        !is_page && others.iter().any(|word| token.is(word))
    };
    // `let .. else` ends the function, so that its block has no value.
    let declares = own.iter().any(|token| token.is("let"));
    let is_let_else = declares && own.last().is_some_and(|last| last.is("else"));
    let is_struct = own.len() == 1 && own[0].text.starts_with(|first: char| first.is_uppercase());
    (!is_binding || is_let_else) && !own.iter().enumerate().any(is_other) && !is_struct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Role;
    use crate::sample::Sample;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let sample = Sample::new(source);
        let mut faults = Vec::new();
        let function = Function::read(&sample.tokens, Role::Page, &mut faults).expect("a function");
        let mut to = Expansion::default();
        emit(&function, &mut to, &|to, name| to.code(name));
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeeze(&sample.spell(&to)), squeeze(expected));
    }

    #[test]
    fn values_of_several_pages_become_responses() {
        check(
            "fn a() -> impl Page { let b = 1; if c { return html!(<p>); } match d { E => html! {<b>}, _ => { html!(<i>).with_title(f) } } }",
            "fn a() -> Response { let b = 1; if c { return Response::page(html!(<p>)); } match d { E => Response::page(html! {<b>}), _ => { Response::from(html!(<i>).with_title(f)) } } }",
        );
        check(
            "fn a() -> impl Page { match b { C => html!(<p>), D => { let e = 1; html!(<b>) } } }",
            "fn a() -> Response { match b { C => Response::page(html!(<p>)), D => { let e = 1; Response::page(html!(<b>)) } } }",
        );
        check(
            "fn a() -> impl Page { let Some(b) = c else { return html!(<p>); }; html!({b}) }",
            "fn a() -> Response { let Some(b) = c else { return Response::page(html!(<p>)); }; Response::page(html!({b})) }",
        );
        check(
            "async fn a() -> Result<impl Page, Error> { if let Some(b) = c { Ok(html!(<p>)) } else { Ok(html!(<b>)) } }",
            "async fn a() -> Result<Response, Error> { if let Some(b) = c { Ok(Response::page(html!(<p>))) } else { Ok(Response::page(html!(<b>))) } }",
        );
    }

    #[test]
    fn values_of_a_layout_become_variants_of_one_type() {
        let check = |source: &str, expected: &str| {
            let sample = Sample::new(source);
            let mut to = Expansion::default();
            emit_variants(&sample.tokens, &mut to, &|to, name| to.code(name));
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&sample.spell(&to)), squeeze(expected));
        };
        check(
            "fn a(b: C<'_>) -> impl Page { if c { return html!(<p>); } html!(<b>) }",
            "fn a(b: C<'_>) -> impl Page { if c { return OneOf::First(html!(<p>)); } OneOf::Other(html!(<b>)) }",
        );
        check(
            "fn a(b: C<'_>) -> impl Page { match b.d() { E => html!(<p>), F => { html!(<b>) } _ => html!(<i>), } }",
            "fn a(b: C<'_>) -> impl Page { match b.d() { E => OneOf::First(html!(<p>)), F => { OneOf::Other(OneOf::First(html!(<b>))) } _ => OneOf::Other(OneOf::Other(html!(<i>))), } }",
        );
        for source in [
            "fn a(b: C<'_>) -> impl Page { html!(<p>) }",
            "fn a(b: C<'_>) -> impl Page { let d = || { html!(<p>) }; html!({d()}) }",
        ] {
            check(source, source);
        }
    }

    #[test]
    fn other_functions_stay_as_they_are() {
        for source in [
            "fn a() -> impl Page { html!(<p>) }",
            "fn a() -> impl Page { let b = if c { html!(<p>) } else { html!(<i>) }; html!({b}) }",
            "fn a() -> impl Page { let b = |c| { html!(<p>) }; list(|| { html!(<b>) }); html!({b}) }",
            "fn a() -> impl Page { fn b() -> impl Html<Flow> { html!(<b>) } html!({b()}) }",
            "fn a() -> Response { if b { html!(<p>) } else { html!(<i>) } }",
            "fn a() -> (impl Page, impl Page) { if b { html!(<p>) } else { html!(<i>) } }",
        ] {
            check(source, source);
        }
    }
}
