//! Expansion of `css!` and `css_file!`: a style sheet that the linker collects, and a Rust constant
//! for each class.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bine_markup::css::{lex, parse, sheet};

use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::literal;
use crate::module_head::ModuleHead;
use crate::token::Token;

use super::add_faults;
use super::text::Text;
use super::write::{Names, write};

/// The call site of a macro.
pub(crate) struct Site<'a> {
    /// An identifier of the file: the package and the path in it.
    pub(crate) file: &'a str,
    /// Reads the file named by a literal, relative to the literal's own file.
    pub(crate) read: &'a dyn Fn(&Token, &str) -> Result<String, String>,
}

/// Expands `css!`. The first token is a bracket with the path of the `bine` crate; optionally
/// `mod name;` follows, then CSS.
pub(crate) fn css(tokens: &[Token], site: &Site<'_>) -> Expansion {
    let (head, tokens) = ModuleHead::read(tokens, ";");
    let mut faults = Vec::new();
    let text = Text::of_tokens(tokens, &mut faults);
    head.expand(&text, site, None, faults)
}

/// Expands `css_file!`: the same, with the path of a file instead of CSS.
pub(crate) fn css_file(tokens: &[Token], site: &Site<'_>) -> Expansion {
    let (head, tokens) = ModuleHead::read(tokens, ";");
    let mut faults = Vec::new();
    let path = match tokens {
        [path] => literal::string(path),
        _ => None,
    };
    let Some(path) = path else {
        let message = "expected the name of a file: `css_file!(\"style.css\")`";
        faults.push(
            tokens.first().map_or_else(
                || Fault::at(Fault::WHOLE, message),
                |first| Fault::new(first, message),
            ),
        );
        return head.expand(&Text::default(), site, None, faults);
    };
    let token = &tokens[0];
    let content = path.and_then(|path| {
        let content = (site.read)(token, &path);
        content
            .map(|content| (path.clone(), content))
            .map_err(|error| Fault::new(token, format!("cannot read `{path}`: {error}")))
    });
    let text = match content {
        Ok((path, content)) => {
            // Some editors write a byte order mark.
            let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
            Text::of_file(&path, content.to_owned(), token.origin)
        }
        Err(fault) => {
            faults.push(fault);
            Text::default()
        }
    };
    head.expand(&text, site, Some(token), faults)
}

impl ModuleHead<'_> {
    fn expand(
        &self,
        text: &Text,
        site: &Site<'_>,
        file: Option<&Token>,
        mut faults: Vec<Fault>,
    ) -> Expansion {
        let pieces = lex(&text.text);
        let mut mistakes = Vec::new();
        let items = parse(&pieces, &mut mistakes);
        sheet(&items, self.module.is_some(), &mut mistakes);
        let ending = self.module.map(|_| ending(&[site.file, &text.text]));
        let names = Names::of(&items, ending);
        let classes = match self.module {
            Some(_) => classes(&names, &mut mistakes),
            None => Vec::new(),
        };
        add_faults(text, mistakes, &mut faults);
        let is_faulty = !faults.is_empty();
        let mut expansion = Expansion { faults, ..Expansion::default() };
        if let Some(module) = self.module {
            // A program may use few classes of a third-party file, but should use all of its own
            // sheet.
            let unused = if file.is_some() { "dead_code," } else { "" };
            expansion.code("#[doc = \"The classes of a style sheet.\"]");
            expansion.code(&format!(
                "#[allow({unused} non_upper_case_globals, unreachable_pub, reason = \"named by the style sheet\")]"
            ));
            expansion.run(self.visibility);
            expansion.code("mod");
            expansion.run(std::slice::from_ref(module));
            expansion.code("{");
            for class in classes {
                self.constant(&mut expansion, &class, text.origin(class.at), &names);
            }
            expansion.code("}");
        }
        if !is_faulty {
            self.submit(&mut expansion, &write(&items, &names), file);
        }
        expansion
    }

    /// Emits the constant of a class. Its first and last token have the span of the class, so the
    /// compiler reports warnings about the constant there.
    fn constant(
        &self,
        expansion: &mut Expansion,
        class: &Class<'_>,
        origin: usize,
        names: &Names<'_>,
    ) {
        let Class { constant, name, .. } = class;
        let ending = names.ending.as_deref().unwrap_or_default();
        expansion.code(&format!("#[doc = {:?}]", format!("`.{name}`")));
        // A raw identifier, because a class may have the name of a Rust keyword.
        expansion.owned(origin, format!("pub const r#{constant}"));
        expansion.code(":");
        expansion.run(self.krate);
        expansion.code("::Class =");
        expansion.run(self.krate);
        expansion.code("::Class::new(");
        expansion.string(&format!("{name}_{ending}"));
        expansion.code(")");
        expansion.owned(origin, ";");
    }

    /// Registers the sheet with the linker.
    fn submit(&self, expansion: &mut Expansion, css: &str, file: Option<&Token>) {
        expansion.code("const _: () = {");
        if let Some(file) = file {
            // Makes the compiler rebuild when the file changes.
            expansion.code("const _: &[::core::primitive::u8] = ::core::include_bytes!(");
            expansion.run(std::slice::from_ref(file));
            expansion.code(");");
        }
        expansion.run(self.krate);
        expansion.code("::__private::submit! {");
        expansion.run(self.krate);
        expansion.code("::__private::Sheet { text:");
        expansion.string(css);
        expansion.code(", module: ::core::module_path!(), line: ::core::line!(), is_file: ");
        expansion.code(if file.is_some() { "true" } else { "false" });
        expansion.code("} } };");
    }
}

/// A class with its Rust constant.
struct Class<'t> {
    constant: String,
    name: &'t str,
    /// The byte offset of its first use.
    at: usize,
}

/// Assigns a constant to each class and reports classes that cannot have one.
fn classes<'t>(names: &Names<'t>, mistakes: &mut Vec<(usize, String)>) -> Vec<Class<'t>> {
    let mut classes: Vec<Class<'t>> = Vec::new();
    for piece in &names.classes {
        let (name, at) = (piece.text, piece.at);
        let constant = name.replace('-', "_");
        let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
        if !constant.chars().all(is_word)
            || ["_", "self", "Self", "super", "crate"].contains(&&*constant)
        {
            let message = format!(
                "`{name}` is not a valid Rust name; write a class of another sheet as `:global(.{name})`"
            );
            mistakes.push((at, message));
            continue;
        }
        if let Some(other) = classes.iter().find(|other| other.constant == constant) {
            let other = other.name;
            let message = format!("`.{name}` and `.{other}` would both be `{constant}` in Rust");
            mistakes.push((at, message));
            continue;
        }
        classes.push(Class { constant, name, at });
    }
    classes
}

/// The alphabet of endings.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The suffix that makes a sheet's names unique: six letters (30 bits) of a hash of its file and
/// content.
fn ending(of: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    let hash = hasher.finish();
    (0..6).map(|place| char::from(LETTERS[(hash >> (5 * place)) as usize % 32])).collect()
}
