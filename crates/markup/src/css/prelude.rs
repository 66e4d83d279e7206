//! Validation of at-rule preludes: names, media queries and container conditions.

use bine_vocabulary as vocabulary;

use super::lex::{Piece, PieceKind};
use super::parse::Mistake;
use super::selector::inside;
use super::tree::AtRule;
use super::{did_you_mean, value};

/// Media types (Media Queries 4, section 2.3).
const MEDIA: [&str; 4] = ["all", "print", "screen", "speech"];

/// Words that combine conditions.
const JOINTS: [&str; 4] = ["and", "not", "only", "or"];

/// Functions whose arguments are not checked: style queries of `@container`.
const FREE: [&str; 2] = ["scroll-state", "style"];

/// Reports the errors between the name of a rule and its block.
pub(super) fn check(rule: &AtRule<'_>, mistakes: &mut Vec<Mistake>) {
    let name = rule.name.name().to_ascii_lowercase();
    let prelude = rule.prelude;
    let mut needs = |what: &str, is_there: bool| {
        if !is_there {
            mistakes.push((rule.name.at, format!("`@{name}` needs {what}")));
        }
    };
    let names = prelude
        .first()
        .is_some_and(|first| matches!(first.kind, PieceKind::Word | PieceKind::String));
    match &*name {
        "keyframes" | "counter-style" | "font-feature-values" => needs("a name", names),
        "property" | "font-palette-values" | "position-try" => {
            let is_own = names && prelude[0].text.starts_with("--");
            needs("a name that begins with `--`", is_own);
        }
        "supports" | "container" => needs("a condition", !prelude.is_empty()),
        _ => {}
    }
    let feature_of = vocabulary::at_rule(&name).map(|rule| rule.descriptors);
    if let Some(features) = feature_of
        && ["media", "container"].contains(&&*name)
    {
        conditions(&name, prelude, features, mistakes);
    }
}

fn conditions(
    rule: &str,
    pieces: &[Piece<'_>],
    features: vocabulary::Words,
    mistakes: &mut Vec<Mistake>,
) {
    let mut rest = pieces;
    // A container query may begin with the name of a container.
    if rule == "container"
        && let [name, after @ ..] = rest
        && name.is_word()
        && !name.is("not")
    {
        rest = after;
    }
    while let [piece, after @ ..] = rest {
        rest = after;
        if piece.opens() {
            let (question, after) = inside(after);
            rest = after;
            if !FREE.iter().any(|free| piece.name().eq_ignore_ascii_case(free)) {
                condition(rule, question, features, mistakes);
            }
        } else if piece.is_word() {
            let mut known = JOINTS.iter().chain(if rule == "media" { &MEDIA[..] } else { &[] });
            if !known.clone().any(|known| piece.is(known)) {
                let meant = did_you_mean("", piece.text, known.by_ref().copied());
                let message = format!(
                    "`@{rule}` has no condition `{}`{meant}; put media features in parentheses",
                    piece.text
                );
                mistakes.push((piece.at, message));
            }
        } else if !piece.is(",") {
            let message = format!("`{}` is not allowed in a condition", piece.text);
            mistakes.push((piece.at, message));
        }
    }
}

/// Checks the content of parentheses: a feature, or nested conditions.
fn condition(
    rule: &str,
    pieces: &[Piece<'_>],
    features: vocabulary::Words,
    mistakes: &mut Vec<Mistake>,
) {
    if pieces.first().is_some_and(|first| first.kind == PieceKind::Open || first.is("not")) {
        return conditions("", pieces, features, mistakes);
    }
    for piece in pieces {
        if let PieceKind::Dimension(unit) = piece.kind {
            value::unit_of(piece, unit, mistakes);
        }
    }
    // The feature is the first word, as in `(width >= 40rem)` and `(40rem <= width)`. Words inside
    // a function belong to a value.
    let Some(feature) =
        pieces.iter().find(|piece| matches!(piece.kind, PieceKind::Word | PieceKind::Function))
    else {
        return;
    };
    let name = feature.text.to_ascii_lowercase();
    let measured = ["min-", "max-"].iter().find_map(|prefix| name.strip_prefix(prefix));
    if feature.kind == PieceKind::Function
        || name.starts_with('-')
        || features.contains(measured.unwrap_or(&name))
    {
        return;
    }
    let meant = did_you_mean("", measured.unwrap_or(&name), features);
    let rule = if rule.is_empty() { "a condition".to_owned() } else { format!("`@{rule}`") };
    mistakes.push((feature.at, format!("{rule} has no feature `{name}`{meant}")));
}
