//! Conversion between the compiler's tokens and the tokens of this crate.

use std::path::Path;
use std::{io, iter};

use proc_macro::{
    Delimiter as CompilerDelimiter, Group as CompilerGroup, Ident, Span, TokenStream, TokenTree,
};

use crate::expansion::{Expansion, Placeholder, placeholder};
use crate::fault::Fault;
use crate::token::{Delimiter, Gap, Group, Kind, Token};

/// A macro's input: this crate's tokens, and the compiler's tokens that they were read from.
pub(crate) struct Source {
    pub(crate) streams: Vec<Vec<Token>>,
    /// Indexed by [`Token::origin`].
    originals: Vec<TokenTree>,
}

impl Source {
    pub(crate) fn read(streams: impl IntoIterator<Item = TokenStream>) -> Self {
        let mut originals = Vec::new();
        let streams =
            streams.into_iter().map(|stream| read_stream(stream, None, &mut originals)).collect();
        Self { streams, originals }
    }

    /// The expansion as compiler tokens: errors first, then the code.
    pub(crate) fn write(&self, expansion: &Expansion) -> TokenStream {
        let code: TokenStream = expansion.code.parse().expect("emitters produce valid tokens");
        let code = self.substitute(code, expansion);
        if expansion.faults.is_empty() {
            return code;
        }
        // The code of a faulty expansion is a block or a list of items. Both allow errors at the
        // start.
        let mut faults: TokenStream =
            expansion.faults.iter().map(|fault| self.compile_error(fault)).collect();
        if let Some(TokenTree::Group(block)) = code.clone().into_iter().next() {
            faults.extend(block.stream());
            return TokenTree::Group(CompilerGroup::new(CompilerDelimiter::Brace, faults)).into();
        }
        faults.extend(code);
        faults
    }

    /// An identifier of the file that calls the macro: the package and the path in it. It is equal
    /// on every machine that builds the file.
    pub(crate) fn file(&self) -> String {
        let path = self.originals.last().map(|token| token.span().file()).unwrap_or_default();
        let variable = |name| std::env::var(name).unwrap_or_default();
        let path = path.strip_prefix(&variable("CARGO_MANIFEST_DIR")).unwrap_or(&path);
        format!("{} {path}", variable("CARGO_PKG_NAME"))
    }

    /// Reads a file by a path relative to the file of `token`, as `include_str!` does.
    pub(crate) fn read_relative(&self, token: &Token, path: &str) -> Result<String, String> {
        let source_file = self.originals[token.origin].span().local_file();
        let source_file = source_file.ok_or("the path of this source file is unknown")?;
        let path = source_file.with_file_name(path);
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    /// Lists the files below a folder, in order, by a path relative to the file of `token`. Hidden
    /// files, links, and names that are not UTF-8 are omitted.
    pub(crate) fn list_relative(&self, token: &Token, path: &str) -> Result<Vec<String>, String> {
        let source_file = self.originals[token.origin].span().local_file();
        let source_file = source_file.ok_or("the path of this source file is unknown")?;
        let mut names = Vec::new();
        list_files(&source_file.with_file_name(path), "", &mut names)
            .map_err(|error| error.to_string())?;
        names.sort_unstable();
        Ok(names)
    }

    fn compile_error(&self, fault: &Fault) -> TokenStream {
        let code: TokenStream = format!("::core::compile_error! {{ {:?} }}", fault.message)
            .parse()
            .expect("a macro call");
        at(code, self.span(fault.origin))
    }

    fn span(&self, origin: usize) -> Span {
        self.originals.get(origin).map_or_else(Span::call_site, TokenTree::span)
    }

    /// Inserts the user's tokens. Generated locals resolve at the macro's definition, so neither
    /// side can refer to the other's locals.
    fn substitute(&self, code: TokenStream, expansion: &Expansion) -> TokenStream {
        let Expansion { runs, owned, .. } = expansion;
        let span_of_run = |run: usize| {
            let first = runs[run].first().map(|token| self.originals[token.origin].span());
            first.map_or_else(Span::mixed_site, |first| Span::mixed_site().located_at(first))
        };
        let substitute = |tree: TokenTree| match tree {
            TokenTree::Group(group) => {
                let span = only_run(group.stream()).map_or_else(Span::mixed_site, span_of_run);
                let inner = self.substitute(group.stream(), expansion);
                let mut group = CompilerGroup::new(group.delimiter(), inner);
                group.set_span(span);
                TokenTree::Group(group).into()
            }
            TokenTree::Ident(identifier) => match placeholder(&identifier.to_string()) {
                Some(Placeholder::Run(run)) => {
                    runs[run].iter().map(|token| self.originals[token.origin].clone()).collect()
                }
                Some(Placeholder::Word { run, word }) => {
                    TokenTree::Ident(Ident::new(word, span_of_run(run))).into()
                }
                Some(Placeholder::Owned(place)) => {
                    let (origin, code) = &owned[place];
                    let code = code.parse().expect("emitters produce valid tokens");
                    at(code, self.span(*origin))
                }
                None => at(TokenTree::Ident(identifier).into(), Span::mixed_site()),
            },
            other => at(other.into(), Span::mixed_site()),
        };
        let borrowed = only_run(code.clone()).map(span_of_run);
        let placed = code.into_iter().map(|tree| match (&tree, borrowed) {
            (TokenTree::Punct(_), Some(span)) => at(tree.into(), span),
            _ => substitute(tree),
        });
        placed.collect()
    }
}

/// The run that a group contains, if it contains nothing else except a leading `&`. Such a group
/// takes the span of the run, so that errors about a hole's value point into the hole.
fn only_run(code: TokenStream) -> Option<usize> {
    let mut trees = code.into_iter().peekable();
    trees.next_if(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == '&'));
    let run = match trees.next()? {
        TokenTree::Group(group) => only_run(group.stream())?,
        TokenTree::Ident(identifier) => match placeholder(&identifier.to_string())? {
            Placeholder::Run(run) => run,
            Placeholder::Word { .. } | Placeholder::Owned(_) => return None,
        },
        _ => return None,
    };
    trees.next().is_none().then_some(run)
}

/// All of `code` with `span`.
fn at(code: TokenStream, span: Span) -> TokenStream {
    code.into_iter()
        .map(|mut tree| {
            if let TokenTree::Group(group) = &tree {
                tree = TokenTree::Group(CompilerGroup::new(
                    group.delimiter(),
                    at(group.stream(), span),
                ));
            }
            tree.set_span(span);
            tree
        })
        .collect()
}

/// Line and column.
type Position = (usize, usize);

fn start(span: Span) -> Position {
    (span.start().line(), span.start().column())
}

fn end(span: Span) -> Position {
    (span.end().line(), span.end().column())
}

fn gap(before: Option<Position>, after: Position) -> Gap {
    match before {
        Some(before) if before == after => Gap::None,
        Some(before) if before.0 == after.0 => Gap::Space,
        _ => Gap::Line,
    }
}

fn read_stream(
    stream: TokenStream,
    mut previous: Option<Position>,
    originals: &mut Vec<TokenTree>,
) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for tree in stream {
        let span = tree.span();
        let origin = originals.len();
        originals.push(tree.clone());
        let (kind, text) = match tree {
            TokenTree::Ident(word) => (Kind::Word, word.to_string()),
            TokenTree::Punct(mark) => (Kind::Mark, iter::once(mark.as_char()).collect()),
            TokenTree::Literal(literal) => (Kind::Literal, literal.to_string()),
            TokenTree::Group(group) => (Kind::Group(read_group(&group, originals)), String::new()),
        };
        // A lifetime is an apostrophe and a word, which both have the span of the whole.
        let is_lifetime = tokens.last().is_some_and(|last| last.is("'"));
        let gap = if is_lifetime { Gap::None } else { gap(previous, start(span)) };
        previous = Some(end(span));
        tokens.push(Token { kind, text, gap, line: start(span).0, origin });
    }
    tokens
}

fn read_group(group: &CompilerGroup, originals: &mut Vec<TokenTree>) -> Group {
    let tokens = read_stream(group.stream(), Some(end(group.span_open())), originals);
    let inner_end = group.stream().into_iter().last().map_or(group.span_open(), |last| last.span());
    let delimiter = match group.delimiter() {
        CompilerDelimiter::Parenthesis => Delimiter::Parenthesis,
        CompilerDelimiter::Bracket => Delimiter::Bracket,
        CompilerDelimiter::Brace => Delimiter::Brace,
        CompilerDelimiter::None => Delimiter::Invisible,
    };
    Group { delimiter, tokens, last_gap: gap(Some(end(inner_end)), start(group.span_close())) }
}

/// Adds the names of all files below a folder, each after `prefix`.
fn list_files(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    /// More files are not meant to be part of a program.
    const MAX_FILES: usize = 10_000;

    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let name = format!("{prefix}{name}");
        if kind.is_dir() {
            list_files(&entry.path(), &format!("{name}/"), names)?;
        } else if kind.is_file() {
            names.push(name);
        }
        if names.len() > MAX_FILES {
            return Err(io::Error::other(format!("the folder has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}
