//! The arguments of a service that its function stores unchanged in columns of rows, as far as its
//! tokens show it.
//!
//! The limits of such a column are limits of the argument. A form shows them to the browser, so that
//! each rule here errs on the side of fewer limits: a browser must not refuse what the service
//! accepts.

use crate::expansion::Expansion;
use crate::function::Function;
use crate::item::split_commas;
use crate::token::{Delimiter, Token, leaves};

/// An argument, and the column that it becomes.
struct Stored<'t> {
    argument: &'t str,
    /// The path of the row type.
    row: &'t [Token],
    column: &'t str,
}

/// Emits a list of the stored arguments, each with the function that finds its column. `private`
/// emits the path of an item that only macros use.
pub(crate) fn emit(
    function: &Function<'_>,
    to: &mut Expansion,
    private: &dyn Fn(&mut Expansion, &str),
) {
    to.code("&[");
    for Stored { argument, row, column } in stored(function) {
        to.code("(");
        to.string(argument);
        to.code(", {");
        // As in `reads`, a single name is looked up in the module.
        let is_single = row.len() == 1;
        if is_single {
            to.code("#[allow(dead_code, unused_imports)] mod __row { struct ");
            to.word_at(0, &row[0].text);
            to.code("; pub(super)");
        }
        to.code("fn __column() -> ::core::option::Option<");
        private(to, "Column> {");
        if is_single {
            to.code("use super::*;");
        }
        to.code("#[allow(unused_imports)] use");
        private(to, "NoTable as _;");
        private(to, "TableProbe::<");
        if is_single {
            to.word_at(0, &row[0].text);
        } else {
            to.run(row);
        }
        to.code(">::column(");
        to.string(column);
        to.code(") }");
        to.code(if is_single { "} __row::__column" } else { "__column" });
        to.code("}), ");
    }
    to.code("]");
}

fn stored<'t>(function: &'t Function<'_>) -> Vec<Stored<'t>> {
    let mut all = Vec::new();
    let Some(body) = function.whole.last().and_then(|body| body.group(Delimiter::Brace)) else {
        return all;
    };
    // A service that ends early may accept what it does not store.
    let tokens = leaves(body);
    let ends_early = |two: &[&Token]| two[0].is("return") && !two[1].is("Err");
    if tokens.windows(2).any(ends_early) {
        return all;
    }
    find(body, function, &mut all);
    all.retain(|stored| is_unchanged(stored.argument, function.whole));
    all
}

/// Finds changes that each run of the function makes: they are statements of its own, the argument
/// of its `Ok`, or the value of a `let`.
fn find<'t>(tokens: &'t [Token], function: &'t Function<'_>, all: &mut Vec<Stored<'t>>) {
    for place in 0..tokens.len() {
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        if let Some(inner) = tokens[place].group(Delimiter::Parenthesis)
            && before.is_some_and(|before| before.is("Ok"))
        {
            find(inner, function, all);
        }
        let is_start = before.is_none_or(|before| {
            [";", "="].iter().any(|mark| before.is(mark))
                || before.group(Delimiter::Brace).is_some()
        });
        if is_start {
            change(&tokens[place..], function, all);
        }
    }
}

/// Reads `call.insert(Row { .. })?`, `caller.store().insert(Row { .. }).await?` and
/// `call.update(id, |row| ..)?`.
fn change<'t>(tokens: &'t [Token], function: &'t Function<'_>, all: &mut Vec<Stored<'t>>) {
    let end = tokens.iter().position(|token| token.is("?")).unwrap_or_default();
    let statement = match &tokens[..end] {
        [statement @ .., dot, wait] if dot.is(".") && wait.is("await") => statement,
        statement => statement,
    };
    let Some((list, method)) = statement.split_last() else { return };
    let Some(list) = list.group(Delimiter::Parenthesis) else { return };
    let Some((context, _)) = method.split_first() else { return };
    let kind = |name: &Token| {
        function.arguments.iter().find(|argument| name.is(&argument.name)).map(|found| found.kind)
    };
    let is_context = kind(context)
        .and_then(<[Token]>::last)
        .is_some_and(|kind| kind.is("Call") || kind.is("Caller"));
    let method: String = method[1..].iter().map(|token| &*token.text).collect();
    match &*method {
        // The parentheses of `store()` have no text of their own.
        ".insert" | ".store.insert" if is_context => insertion(list, function, all),
        ".update" | ".store.update" if is_context => {
            let [id, comma, bar, row, end, body @ ..] = list else { return };
            let id = kind(id).filter(|_| comma.is(",") && bar.is("|") && end.is("|"));
            let Some([name, open, path @ .., close]) = id else { return };
            if name.is("Id") && open.is("<") && close.is(">") && is_path(path) {
                update(path, row, body, function, all);
            }
        }
        _ => {}
    }
}

fn insertion<'t>(list: &'t [Token], function: &'t Function<'_>, all: &mut Vec<Stored<'t>>) {
    let Some((fields, path)) = list.split_last() else { return };
    let Some(fields) = fields.group(Delimiter::Brace).filter(|_| is_path(path)) else { return };
    for field in split_commas(fields) {
        let (column, value) = match field {
            [name] => (name, name),
            [column, colon, value] if colon.is(":") => (column, value),
            _ => continue,
        };
        if let Some(argument) = argument(value, function) {
            all.push(Stored { argument, row: path, column: plain(column) });
        }
    }
}

/// Reads the assignments `row.column = argument` of a closure.
fn update<'t>(
    path: &'t [Token],
    row: &Token,
    body: &'t [Token],
    function: &'t Function<'_>,
    all: &mut Vec<Stored<'t>>,
) {
    let body = match body {
        [block] => block.group(Delimiter::Brace).unwrap_or_default(),
        body => body,
    };
    for statement in body.split(|token| token.is(";") || token.is(",")) {
        let [start, dot, column, equals, value] = statement else { continue };
        let tokens = leaves(body);
        let is_column = |two: &&[&Token]| two[0].is(".") && two[1].is(&column.text);
        let is_once = tokens.windows(2).filter(is_column).count() == 1;
        let is_assignment = start.is(&row.text) && dot.is(".") && equals.is("=") && is_once;
        if let Some(argument) = argument(value, function).filter(|_| is_assignment) {
            all.push(Stored { argument, row: path, column: plain(column) });
        }
    }
}

/// The argument of the function with this name.
fn argument<'t>(name: &Token, function: &'t Function<'_>) -> Option<&'t str> {
    let found = function.arguments.iter().find(|argument| plain(name) == argument.name)?;
    name.is_word().then_some(&*found.name)
}

/// Whether a function only reads an argument, so that its value is what the client has sent: each
/// use of its name is a field or a method of it, or the one use that stores it.
fn is_unchanged(name: &str, function: &[Token]) -> bool {
    let tokens = leaves(function);
    let is_name = |token: &Token| token.is_word() && plain(token) == name;
    let mut others = 0;
    for (place, _) in tokens.iter().enumerate().filter(|(_, token)| is_name(token)) {
        let before = place.checked_sub(1).map(|before| tokens[before]);
        let is_mutable = before.is_some_and(|before| before.is("mut"));
        let is_member = before.is_some_and(|before| before.is("."));
        let next = tokens.get(place + 1);
        let is_label = next.is_some_and(|next| next.is(":"));
        let is_declared = before.is_some_and(|before| before.is("let"));
        if is_mutable || is_declared {
            return false;
        }
        let is_read = next.is_some_and(|next| next.is("."));
        others += usize::from(!is_member && !is_label && !is_read);
    }
    others <= 1
}

/// Whether this is the path of a type: names with `::` between them, the last in upper case.
fn is_path(path: &[Token]) -> bool {
    let is_separated = path.chunks(3).all(|part| match part {
        [name] => name.is_word(),
        [name, one, other] => name.is_word() && one.is(":") && other.is(":"),
        _ => false,
    });
    let is_type = |last: &Token| {
        last.text.starts_with(|first: char| first.is_ascii_uppercase()) && !last.is("Self")
    };
    is_separated && path.last().is_some_and(is_type)
}

/// The name without `r#`.
fn plain(name: &Token) -> &str {
    name.text.trim_start_matches("r#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Role;
    use crate::sample::Sample;

    /// Checks which arguments of `call: &mut Call, id: Id<m::Card>, a: Text, b: u8` this body
    /// stores.
    #[track_caller]
    fn check(body: &str, expected: &[&str]) {
        check_function(
            &format!("fn f(call: &mut Call, id: Id<m::Card>, a: Text, b: u8) -> R {{ {body} }}"),
            expected,
        );
    }

    #[track_caller]
    fn check_function(source: &str, expected: &[&str]) {
        let sample = Sample::new(source);
        let mut faults = Vec::new();
        let function =
            Function::read(&sample.tokens, Role::Service, &mut faults).expect("a function");
        let found = stored(&function).into_iter().map(|Stored { argument, row, column }| {
            let row: String = row.iter().map(|token| &*token.text).collect();
            format!("{argument} {row}.{column}")
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{source}");
    }

    #[test]
    fn finds_arguments_in_rows_that_each_run_inserts() {
        check("Ok(call.insert(Note { id: Id::new(), a, c: b })?)", &["a Note.a", "b Note.c"]);
        check(
            "if a.len() > 9 { return Err(x); } let n = call.insert(m::Note { a, b: b + 1 })?; Ok(n)",
            &["a m::Note.a"],
        );
        check_function(
            "async fn f(caller: Caller, r#type: Text) -> R { caller.store().insert(N { r#type }).await?; Ok(()) }",
            &["type N.type"],
        );
    }

    #[test]
    fn finds_arguments_that_an_update_assigns() {
        check("call.update(id, |row| row.title = a)?; Ok(())", &["a m::Card.title"]);
        check(
            "call.update(id, |row| { row.title = a; row.n = b; row.c += 1; })?; Ok(())",
            &["a m::Card.title", "b m::Card.n"],
        );
    }

    #[test]
    fn ignores_changes_of_some_runs_and_of_other_values() {
        for body in [
            "if x { call.insert(Note { a })?; } Ok(())",
            "if b.is_zero() { return Ok(()); } call.insert(Note { a })?; Ok(())",
            "let _ = call.insert(Note { a }); Ok(())",
            "x && call.insert(Note { a })?; Ok(())",
            "x.map(|_| call.insert(Note { a })?); Ok(())",
            "other.insert(Note { a })?; Ok(())",
            "call.insert(Note { a: a.trim().into() })?; Ok(())",
            "let a = a.trim().into(); call.insert(Note { a })?; Ok(())",
            "let a: Text = a.trim().into(); call.insert(Note { a })?; Ok(())",
            "call.insert(Self { a })?; Ok(())",
            "call.insert(row(a))?; Ok(())",
            "call.update(other, |row| row.title = a)?; Ok(())",
            "call.update(id, |row| { if x { row.title = a; } })?; Ok(())",
            "call.update(id, |row| { row.title = a; row.title.truncate(9); })?; Ok(())",
        ] {
            check(body, &[]);
        }
        check_function(
            "fn f(call: &mut Call, mut a: Text) -> R { a.truncate(9); call.insert(N { a })?; Ok(()) }",
            &[],
        );
    }
}
