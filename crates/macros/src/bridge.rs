//! Decides how the compiler's tokens become ours, and how generated code becomes theirs.

use std::iter;

use proc_macro::{Delimiter as Fence, Group as Fenced, Ident, Span, TokenStream, TokenTree};

use crate::expansion::{Expansion, Place, place};
use crate::fault::Fault;
use crate::token::{Delimiter, Gap, Group, Kind, Token};

/// What a macro was given, in our tokens, with the compiler's own beside them.
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

    /// The expansion as the compiler wants it: faults first, then the code.
    pub(crate) fn write(&self, expansion: &Expansion) -> TokenStream {
        let code: TokenStream = expansion.code.parse().expect("the emitters write whole tokens");
        let code = self.substitute(code, expansion);
        if expansion.faults.is_empty() {
            return code;
        }
        // The code of a faulty expansion is a block or a list of items, and these are legal at the head of both.
        let mut faults: TokenStream =
            expansion.faults.iter().map(|fault| self.compile_error(fault)).collect();
        if let Some(TokenTree::Group(block)) = code.clone().into_iter().next() {
            faults.extend(block.stream());
            return TokenTree::Group(Fenced::new(Fence::Brace, faults)).into();
        }
        faults.extend(code);
        faults
    }

    /// What tells the file of the macro's call from every other: its package, and its path therein. The same on each
    /// machine that builds it.
    pub(crate) fn file(&self) -> String {
        let path = self.originals.last().map(|token| token.span().file()).unwrap_or_default();
        let variable = |name| std::env::var(name).unwrap_or_default();
        let path = path.strip_prefix(&variable("CARGO_MANIFEST_DIR")).unwrap_or(&path);
        format!("{} {path}", variable("CARGO_PKG_NAME"))
    }

    /// Reads a file whose path is relative to that of the file in which a token stands, as `include_str!` does.
    pub(crate) fn read_beside(&self, token: &Token, path: &str) -> Result<String, String> {
        let beside = self.originals[token.origin].span().local_file();
        let beside = beside.ok_or("nobody knows where this source file is")?;
        let path = beside.with_file_name(path);
        std::fs::read_to_string(path).map_err(|error| error.to_string())
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

    /// Puts the user's tokens in their places. Our own resolve their locals where the macro is defined, so that
    /// neither side can name the other's.
    fn substitute(&self, code: TokenStream, expansion: &Expansion) -> TokenStream {
        let Expansion { runs, owned, .. } = expansion;
        let spot = |run: usize| {
            let first = runs[run].first().map(|token| self.originals[token.origin].span());
            first.map_or_else(Span::mixed_site, |first| Span::mixed_site().located_at(first))
        };
        let substitute = |tree: TokenTree| match tree {
            TokenTree::Group(group) => {
                let span = only_run(group.stream()).map_or_else(Span::mixed_site, spot);
                let inner = self.substitute(group.stream(), expansion);
                let mut group = Fenced::new(group.delimiter(), inner);
                group.set_span(span);
                TokenTree::Group(group).into()
            }
            TokenTree::Ident(identifier) => match place(&identifier.to_string()) {
                Some(Place::Run(run)) => {
                    runs[run].iter().map(|token| self.originals[token.origin].clone()).collect()
                }
                Some(Place::Word { run, word }) => {
                    TokenTree::Ident(Ident::new(word, spot(run))).into()
                }
                Some(Place::Owned(place)) => {
                    let (origin, code) = &owned[place];
                    let code = code.parse().expect("the emitters write whole tokens");
                    at(code, self.span(*origin))
                }
                None => at(TokenTree::Ident(identifier).into(), Span::mixed_site()),
            },
            other => at(other.into(), Span::mixed_site()),
        };
        let borrowed = only_run(code.clone()).map(spot);
        let placed = code.into_iter().map(|tree| match (&tree, borrowed) {
            (TokenTree::Punct(_), Some(span)) => at(tree.into(), span),
            _ => substitute(tree),
        });
        placed.collect()
    }
}

/// The run that a group holds, if it holds nothing else but an `&` before it. Such a group is blamed on the run:
/// errors about the value of a hole then point into the hole.
fn only_run(code: TokenStream) -> Option<usize> {
    let mut trees = code.into_iter().peekable();
    trees.next_if(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == '&'));
    let run = match trees.next()? {
        TokenTree::Group(group) => only_run(group.stream())?,
        TokenTree::Ident(identifier) => match place(&identifier.to_string())? {
            Place::Run(run) => run,
            Place::Word { .. } | Place::Owned(_) => return None,
        },
        _ => return None,
    };
    trees.next().is_none().then_some(run)
}

/// All of `code`, at `span`.
fn at(code: TokenStream, span: Span) -> TokenStream {
    code.into_iter()
        .map(|mut tree| {
            if let TokenTree::Group(group) = &tree {
                tree = TokenTree::Group(Fenced::new(group.delimiter(), at(group.stream(), span)));
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
    let mut tokens = Vec::new();
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
        let gap = gap(previous, start(span));
        previous = Some(end(span));
        tokens.push(Token { kind, text, gap, line: start(span).0, origin });
    }
    tokens
}

fn read_group(group: &Fenced, originals: &mut Vec<TokenTree>) -> Group {
    let tokens = read_stream(group.stream(), Some(end(group.span_open())), originals);
    let inner_end = group.stream().into_iter().last().map_or(group.span_open(), |last| last.span());
    let delimiter = match group.delimiter() {
        Fence::Parenthesis => Delimiter::Parenthesis,
        Fence::Bracket => Delimiter::Bracket,
        Fence::Brace => Delimiter::Brace,
        Fence::None => Delimiter::Invisible,
    };
    Group { delimiter, tokens, last_gap: gap(Some(end(inner_end)), start(group.span_close())) }
}
