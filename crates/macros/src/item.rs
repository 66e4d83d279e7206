//! Splitting of items: attributes, visibility and lists.

use crate::token::{Delimiter, Token};

/// Splits the `#[..]` attributes from the rest of an item.
pub(crate) fn split_attributes(item: &[Token]) -> (Vec<&[Token]>, &[Token]) {
    let (mut attributes, mut rest) = (Vec::new(), item);
    while let [mark, bracket, ..] = rest
        && mark.is("#")
        && bracket.group(Delimiter::Bracket).is_some()
    {
        let (attribute, after) = rest.split_at(2);
        attributes.push(attribute);
        rest = after;
    }
    (attributes, rest)
}

/// Splits a list at commas, except those inside `<..>`, which the compiler does not group.
pub(crate) fn split_commas(list: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    let mut arrow_may_end = false;
    let parts = list.split(|token| {
        let ends_arrow = arrow_may_end && token.is(">");
        arrow_may_end = token.is("-");
        if token.is("<") {
            depth += 1;
        } else if token.is(">") && !ends_arrow {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is(",")
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Splits `pub` or `pub(..)`, if present, from the rest of an item.
pub(crate) fn split_visibility(item: &[Token]) -> (&[Token], &[Token]) {
    let visible = match item {
        [public, scope, ..]
            if public.is("pub") && scope.group(Delimiter::Parenthesis).is_some() =>
        {
            2
        }
        [public, ..] if public.is("pub") => 1,
        _ => 0,
    };
    item.split_at(visible)
}
