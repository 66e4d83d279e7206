//! `#[layout]`: a function from the content of a page to a whole page may have several `html!`.

use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::item::{split_attributes, split_visibility};
use crate::several_pages;
use crate::token::{Delimiter, Token};

/// Expands `#[layout(arguments)]` on `item`.
pub(crate) fn layout(arguments: &[Token], item: &[Token]) -> Expansion {
    let mut to = Expansion::default();
    let krate = match arguments {
        [] => None,
        [word, equals, krate @ ..] if word.is("crate") && equals.is("=") && !krate.is_empty() => {
            Some(krate)
        }
        [unknown, ..] => {
            to.faults.push(Fault::new(unknown, "a layout takes no argument but `crate = path`"));
            None
        }
    };
    let (attributes, rest) = split_attributes(item);
    let (visibility, whole) = split_visibility(rest);
    let is_function = whole.first().is_some_and(|word| word.is("fn"))
        && whole.last().is_some_and(|body| body.group(Delimiter::Brace).is_some());
    if !is_function {
        let origin = whole.first().map_or(Fault::WHOLE, |token| token.origin);
        let message = "a layout is a function: `fn layout(content: PageContent<'_>) -> impl Page`";
        to.faults.push(Fault { origin, message: message.to_owned() });
        return to;
    }
    for attribute in attributes {
        to.run(attribute);
    }
    to.run(visibility);
    several_pages::emit_variants(whole, &mut to, &|to, name| match krate {
        Some(path) => {
            to.run(path);
            to.code(&format!("::__private::html::{name}"));
        }
        None => to.code(&format!("::bine::__private::html::{name}")),
    });
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[track_caller]
    fn check(arguments: &str, item: &str, expected: &str) {
        let (arguments, item) = (Sample::new(arguments), Sample::new(item));
        let expansion = layout(&arguments.tokens, &item.tokens);
        let faults: Vec<&str> =
            expansion.faults.iter().map(|fault| fault.message.as_str()).collect();
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        let found = if faults.is_empty() { item.spell(&expansion) } else { faults.join("; ") };
        assert_eq!(squeeze(&found), squeeze(expected));
    }

    #[test]
    fn keeps_attributes_and_visibility() {
        check(
            "",
            "#[inline] pub(crate) fn a(b: C<'_>) -> impl Page { html!(<p>) }",
            "#[inline] pub(crate) fn a(b: C<'_>) -> impl Page { html!(<p>) }",
        );
        check(
            "",
            "fn a(b: C<'_>) -> impl Page { if c { html!(<p>) } else { html!(<b>) } }",
            "fn a(b: C<'_>) -> impl Page { if c { ::bine::__private::html::OneOf::First(html!(<p>)) } else { ::bine::__private::html::OneOf::Other(html!(<b>)) } }",
        );
    }

    #[test]
    fn rejects_other_items_and_arguments() {
        check(
            "",
            "struct A;",
            "a layout is a function: `fn layout(content: PageContent<'_>) -> impl Page`",
        );
        check(
            "\"/path\"",
            "fn a(b: C<'_>) -> impl Page { html!(<p>) }",
            "a layout takes no argument but `crate = path`",
        );
    }
}
