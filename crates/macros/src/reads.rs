//! Tables that a function reads, as far as its tokens name them.

use crate::expansion::Expansion;
use crate::token::{Kind, Token};

/// The methods of a snapshot that name their table between angle brackets.
const METHODS: [&str; 3] = ["newest", "all", "count"];

/// Registers the tables that these tokens read with the linker: the program compares them with its
/// tables when it starts. They are the types in `.newest::<Row>(..)` and in `Row::BY_COLUMN`.
pub(crate) fn register(function: &[Token], krate: Option<&[Token]>, to: &mut Expansion) {
    let mut paths = Vec::new();
    find(function, &mut paths);
    for path in paths {
        emit(path, krate, to);
    }
}

/// Adds each path once.
fn find<'t>(tokens: &'t [Token], paths: &mut Vec<&'t [Token]>) {
    for (place, token) in tokens.iter().enumerate() {
        if let Kind::Group(group) = &token.kind {
            find(&group.tokens, paths);
        }
        let rest = &tokens[place..];
        let named = match rest {
            [dot, method, one, other, open, path @ ..]
                if dot.is(".")
                    && METHODS.iter().any(|known| method.is(known))
                    && [one, other].iter().all(|colon| colon.is(":"))
                    && open.is("<") =>
            {
                let length = path_length(path);
                path.get(length).filter(|after| after.is(">")).map(|_| &path[..length])
            }
            _ if starts_path(tokens, place) => {
                let length = path_length(rest);
                // The last name is the index.
                (length > 3 && rest[length - 1].text.starts_with("BY_"))
                    .then(|| &rest[..length - 3])
            }
            _ => None,
        };
        let is_same = |one: &[Token], other: &[Token]| {
            one.iter().map(|token| &token.text).eq(other.iter().map(|token| &token.text))
        };
        let named = named.filter(|path| is_row(path));
        if let Some(path) = named.filter(|path| !paths.iter().any(|known| is_same(known, path))) {
            paths.push(path);
        }
    }
}

/// Whether a path may begin here: it does not continue another one.
fn starts_path(tokens: &[Token], place: usize) -> bool {
    tokens[place].is_word()
        && !place
            .checked_sub(1)
            .is_some_and(|before| tokens[before].is(":") || tokens[before].is("."))
}

/// The number of tokens of the path at the start: names with `::` between them.
fn path_length(tokens: &[Token]) -> usize {
    let mut length = usize::from(tokens.first().is_some_and(Token::is_word));
    while let (1.., Some([one, other, name])) = (length, tokens.get(length..length + 3))
        && one.is(":")
        && other.is(":")
        && name.is_word()
    {
        length += 3;
    }
    length
}

/// Whether this may be the path of a row type: modules in lower case, then a name in upper case.
fn is_row(path: &[Token]) -> bool {
    let Some((last, modules)) = path.split_last() else { return false };
    let is_upper = |token: &Token| token.text.starts_with(|first: char| first.is_ascii_uppercase());
    is_upper(last) && !last.is("Self") && !modules.iter().any(is_upper)
}

/// Emits the registration of one type. The span of the first run, which exists before, only places
/// the warnings about generated names, which are allowed.
fn emit(path: &[Token], krate: Option<&[Token]>, to: &mut Expansion) {
    let text: String = path.iter().map(|token| &*token.text).collect();
    let is_single = path.len() == 1;
    let private = |to: &mut Expansion, name: &str| {
        match krate {
            Some(krate) => drop(to.run(krate)),
            None => to.code(" ::bine"),
        }
        to.code("::__private::");
        to.code(name);
    };
    to.code("const _: () = {");
    if is_single {
        // A single name may be that of a type parameter or an item in the function, which this
        // macro cannot see. The name is therefore looked up in the module: the import takes
        // precedence over the type before it, which is there for names that the module lacks.
        to.code("#[allow(dead_code, unused_imports)] mod __reference { struct ");
        to.word_at(0, &text);
        to.code("; pub(super)");
    }
    to.code("fn __find() -> ::core::option::Option<(::core::any::TypeId, &'static ::core::primitive::str)> {");
    if is_single {
        to.code("use super::*;");
    }
    to.code("#[allow(unused_imports)] use");
    private(to, "NoTable as _;");
    private(to, "TableProbe::<");
    if is_single {
        to.word_at(0, &text);
    } else {
        to.run(path);
    }
    to.code(">::table() }");
    to.code(if is_single { "} use __reference::__find;" } else { "" });
    private(to, "submit! {");
    private(
        to,
        "TableReference { place: || ::core::any::type_name_of_val(&__find), file: ::core::file!(),",
    );
    to.code(&format!("line: {}, find: __find, text:", path[0].line));
    to.string(&text);
    to.code("} } };");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let sample = Sample::new(source);
        let mut paths = Vec::new();
        find(&sample.tokens, &mut paths);
        let text = |path: &&[Token]| path.iter().map(|token| &*token.text).collect::<String>();
        let found: Vec<String> = paths.iter().map(text).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn finds_row_types_of_reads_once() {
        check("store.read().newest::<Note>(20)", &["Note"]);
        check(
            "{ html!(<ul>{for a in s.all::<shop::Item>() { {s.count::<Note>()} }}</ul>) }",
            &["shop::Item", "Note"],
        );
        check(
            "f(now.find(Note::BY_TEXT, a), now.one(crate::b::Item::BY_NAME, c))",
            &["Note", "crate::b::Item"],
        );
        check("a.newest::<Note>(1); b.all::<Note>(); Note::BY_TEXT", &["Note"]);
    }

    #[test]
    fn ignores_other_paths() {
        for other in [
            "size_of::<Note>()",
            "a.newest(1)",
            "a.all::<T<U>>()",
            "Note::NEW",
            "BY_TEXT",
            "a::BY_TEXT",
            "Self::BY_TEXT",
            "a.newest::<Self>(1)",
            "a.newest::<_>(1)",
            "Outer::Note::BY_TEXT",
            "a.count::<u8>()",
            "Note { id }",
            "a.count()",
        ] {
            check(other, &[]);
        }
    }
}
