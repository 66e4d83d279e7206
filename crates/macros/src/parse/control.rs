//! Parser of the content of braces: an expression, `let` statements, or `for`, `if` and `match` with
//! markup.

use super::parse_body;
use crate::fault::Fault;
use crate::token::{Delimiter, Gap, Kind, Token};
use crate::tree::{Branch, Node};

/// Parses a hole in text. `raw`: it is inside `<script>` or `<style>`.
pub(super) fn hole(brace: &Token, raw: bool, faults: &mut Vec<Fault>) -> Option<Node> {
    let tokens = brace.group(Delimiter::Brace)?;
    let Some((first, rest)) = tokens.split_first() else {
        faults.push(Fault::new(
            brace,
            "an empty hole: put an expression between the braces (a comment needs none)",
        ));
        return None;
    };
    let word = if first.is_word() { first.text.as_str() } else { "" };
    let node = match word {
        "for" => for_loop(first, rest, raw, faults),
        "if" => conditional(first, rest, raw, faults),
        "match" => choice(first, rest, raw, faults),
        "let" => bindings(tokens, faults),
        "while" | "loop" => Err(Fault::new(
            first,
            format!("`{word}` is not supported in a page: use `for`, `if` or `match`"),
        )),
        _ => {
            reject_suspension(tokens, faults);
            let code = tokens.to_vec();
            Ok(if raw { Node::RawHole(code) } else { Node::Hole(code, first.origin) })
        }
    };
    node.map_err(|fault| faults.push(fault)).ok()
}

/// `let pattern = value; let pattern: Type = value;`
fn bindings(tokens: &[Token], faults: &mut Vec<Fault>) -> Result<Node, Fault> {
    const FORM: &str = "a variable is declared by `{let pattern = value;}`";
    for statement in tokens.split_inclusive(|token| token.is(";")) {
        let [word, rest @ ..] = statement else { continue };
        if !word.is("let") {
            let message =
                "only `let` statements are allowed after a `let`: end the braces, and open others";
            return Err(Fault::new(word, message));
        }
        let Some((end, binding)) = rest.split_last().filter(|(last, _)| last.is(";")) else {
            let last = rest.last().unwrap_or(word);
            return Err(Fault::new(
                last,
                "a `let` ends with a semicolon: `{let pattern = value;}`",
            ));
        };
        let equals = binding.iter().position(|token| token.is("="));
        let (pattern, value) = binding.split_at(equals.ok_or_else(|| Fault::new(word, FORM))?);
        if pattern.is_empty() || value.len() < 2 {
            return Err(Fault::new(if pattern.is_empty() { word } else { end }, FORM));
        }
        // Rust allows no `}` before the `else` of a `let`.
        let is_own_else = |place: &usize| {
            value[*place].is("else") && value[*place - 1].group(Delimiter::Brace).is_none()
        };
        if let Some(own_else) = (1..value.len()).find(is_own_else) {
            let message = "a `let` in a page has no `else`: use `{if let pattern = value { markup } else { markup }}`";
            return Err(Fault::new(&value[own_else], message));
        }
        reject_suspension(value, faults);
        reject_jumps(value, false, faults);
    }
    Ok(Node::Let(tokens.to_vec()))
}

/// Rejects each `return`, `break` and `continue` that would exit the page with open elements.
///
/// Jumps within a loop of the value and to its label are allowed. After `|` and `fn` nothing is
/// rejected, because they may begin a closure or a function.
fn reject_jumps(tokens: &[Token], in_loop: bool, faults: &mut Vec<Fault>) {
    let mut loops = in_loop;
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1);
        match token.text.as_str() {
            "|" | "fn" => return,
            "for" | "while" | "loop" if token.is_word() => loops = true,
            "return" | "break" | "continue"
                if token.is_word()
                    && (token.is("return") || !in_loop)
                    && !next.is_some_and(|next| next.is("'")) =>
            {
                let message = format!(
                    "`{}` would leave the page with open elements: use `if` or `match` with markup",
                    token.text
                );
                faults.push(Fault::new(token, message));
            }
            _ => {}
        }
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        let is_apart =
            before.is_some_and(|before| ["!", "async", "move"].iter().any(|word| before.is(word)));
        if let Kind::Group(group) = &token.kind
            && !is_apart
        {
            let is_brace = group.delimiter == Delimiter::Brace;
            reject_jumps(&group.tokens, in_loop || loops && is_brace, faults);
            if is_brace {
                loops = in_loop;
            }
        }
    }
}

/// `for pattern in iterator { markup }`
fn for_loop(
    word: &Token,
    rest: &[Token],
    raw: bool,
    faults: &mut Vec<Fault>,
) -> Result<Node, Fault> {
    let wrong = || Fault::new(word, "a loop is written `{for pattern in iterator { markup }}`");
    let (body, head) = split_last_brace(rest).ok_or_else(wrong)?;
    let middle = head.iter().position(|token| token.is("in")).ok_or_else(wrong)?;
    let (pattern, iterator) = (&head[..middle], &head[middle + 1..]);
    if pattern.is_empty() || iterator.is_empty() {
        return Err(wrong());
    }
    reject_suspension(iterator, faults);
    Ok(Node::For {
        pattern: pattern.to_vec(),
        iterator: iterator.to_vec(),
        body: parse_body(body, raw, faults),
    })
}

/// `if condition { markup } else if condition { markup } else { markup }`
fn conditional(
    word: &Token,
    rest: &[Token],
    raw: bool,
    faults: &mut Vec<Fault>,
) -> Result<Node, Fault> {
    let wrong = |token| {
        Fault::new(token, "a conditional is written `{if condition { markup } else { markup }}`")
    };
    let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
    let (mut word, mut rest) = (word, rest);
    loop {
        // A condition may contain braces. The body is the first brace before `else` or the end.
        let ends_here = |(index, token): (usize, &Token)| {
            token.group(Delimiter::Brace).is_some()
                && rest.get(index + 1).is_none_or(|next| next.is("else"))
        };
        let end = rest.iter().enumerate().position(ends_here).ok_or_else(|| wrong(word))?;
        let body = rest[end].group(Delimiter::Brace).unwrap_or_default();
        let condition = &rest[..end];
        if condition.is_empty() {
            return Err(wrong(word));
        }
        reject_suspension(condition, faults);
        branches.push(Branch { head: condition.to_vec(), body: parse_body(body, raw, faults) });
        match &rest[end + 1..] {
            [] => break,
            [_, next, after @ ..] if next.is("if") => (word, rest) = (next, after),
            [_, last] if last.group(Delimiter::Brace).is_some() => {
                otherwise =
                    parse_body(last.group(Delimiter::Brace).unwrap_or_default(), raw, faults);
                break;
            }
            after => return Err(wrong(&after[0])),
        }
    }
    Ok(Node::If { branches, otherwise })
}

/// `match value { pattern => { markup } pattern if guard => { markup } }`
fn choice(word: &Token, rest: &[Token], raw: bool, faults: &mut Vec<Fault>) -> Result<Node, Fault> {
    let wrong = |token| {
        Fault::new(token, "a match is written `{match value { pattern => { markup } .. }}`")
    };
    let (mut rest, value) = split_last_brace(rest).ok_or_else(|| wrong(word))?;
    if value.is_empty() {
        return Err(wrong(word));
    }
    reject_suspension(value, faults);
    let mut arms = Vec::new();
    while let Some(first) = rest.first() {
        if first.is(",") {
            rest = &rest[1..];
            continue;
        }
        let is_arrow =
            |pair: &[Token]| pair[0].is("=") && pair[1].is(">") && pair[1].gap == Gap::None;
        let arrow = rest.windows(2).position(is_arrow).ok_or_else(|| wrong(first))?;
        let head = &rest[..arrow];
        if head.is_empty() {
            return Err(wrong(first));
        }
        if let Some(guard) = head.iter().position(|token| token.is("if")) {
            reject_suspension(&head[guard + 1..], faults);
        }
        let body = rest.get(arrow + 2).ok_or_else(|| wrong(&rest[arrow]))?;
        let markup = body.group(Delimiter::Brace).ok_or_else(|| {
            Fault::new(body, "put the markup of an arm in braces: `pattern => { markup }`")
        })?;
        arms.push(Branch { head: head.to_vec(), body: parse_body(markup, raw, faults) });
        rest = &rest[arrow + 3..];
    }
    Ok(Node::Match { value: value.to_vec(), arms })
}

fn split_last_brace(tokens: &[Token]) -> Option<(&[Token], &[Token])> {
    let (last, before) = tokens.split_last()?;
    Some((last.group(Delimiter::Brace)?, before))
}

/// Rejects each `.await` and `?` of an expression: a page is written after its handler has
/// returned, without interruption.
///
/// Closures, `async` blocks and macros are skipped, because control flow in them stays inside the
/// hole.
pub(super) fn reject_suspension(tokens: &[Token], faults: &mut Vec<Fault>) {
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        let follows = |text: &str| before.is_some_and(|before| before.is(text));
        if token.is("await") && follows(".") {
            faults.push(Fault::new(
                token,
                "a page cannot await: assign the value before html!: `let x = ...await;`",
            ));
        } else if token.is("?") {
            faults.push(Fault::new(
                token,
                "a page cannot return an error: assign the value before html!: `let x = ...?;`",
            ));
        } else if let Kind::Group(group) = &token.kind {
            let own_block = group.delimiter == Delimiter::Brace
                && ["|", "async", "move"].iter().any(|word| follows(word));
            if !own_block && !follows("!") {
                reject_suspension(&group.tokens, faults);
            }
        }
    }
}
