//! Writer of style sheets: without comments and unneeded white space, and with scoped names.
//!
//! It changes only names and omits only semicolons before braces, so the result parses to the same
//! sheet.

use bine_markup::css::{AtRule, Declaration, Gap, Item, Piece, PieceKind, Rule, inside};

/// The names of a sheet that get a suffix, so that they are unique among all sheets.
#[derive(Debug, Default)]
pub(crate) struct Names<'p> {
    /// The suffix; `None`: names stay unchanged.
    pub(crate) ending: Option<String>,
    /// The classes without duplicates, in the order of the sheet.
    pub(crate) classes: Vec<Piece<'p>>,
    /// The names of animations.
    pub(crate) animations: Vec<&'p str>,
}

impl<'p> Names<'p> {
    /// Collects the names of a sheet.
    pub(crate) fn of(items: &[Item<'p>], ending: Option<String>) -> Self {
        let mut names = Self { ending, ..Self::default() };
        names.find(items);
        names
    }

    fn find(&mut self, items: &[Item<'p>]) {
        for item in items {
            match item {
                Item::Declaration(_) => {}
                Item::Rule(rule) => {
                    self.find_classes(rule.prelude);
                    self.find(&rule.block);
                }
                Item::At(rule) => {
                    match (&*rule.name.name().to_ascii_lowercase(), rule.prelude.first()) {
                        ("keyframes", Some(name)) if name.is_word() => {
                            self.animations.push(name.text);
                        }
                        ("scope", _) => self.find_classes(rule.prelude),
                        _ => {}
                    }
                    self.find(rule.block.as_deref().unwrap_or_default());
                }
            }
        }
    }

    fn find_classes(&mut self, selector: &'p [Piece<'p>]) {
        let mut rest = selector;
        while let [piece, after @ ..] = rest {
            rest = after;
            if is_global(piece) {
                rest = inside(after).1;
            } else if let [name, ..] = after
                && is_class(piece, name)
                && !self.classes.iter().any(|known| known.text == name.text)
            {
                self.classes.push(*name);
            }
        }
    }
}

/// Writes a sheet.
pub(crate) fn write(items: &[Item<'_>], names: &Names<'_>) -> String {
    let mut writer = Writer { text: String::new(), names };
    writer.items(items);
    writer.text
}

fn is_class(dot: &Piece<'_>, name: &Piece<'_>) -> bool {
    dot.is(".") && name.is_word() && name.gap == Gap::None && !name.comment
}

fn is_global(piece: &Piece<'_>) -> bool {
    piece.kind == PieceKind::Function && piece.name().eq_ignore_ascii_case("global")
}

struct Writer<'n> {
    text: String,
    names: &'n Names<'n>,
}

impl Writer<'_> {
    fn items(&mut self, items: &[Item<'_>]) {
        for (place, item) in items.iter().enumerate() {
            match item {
                Item::Rule(rule) => self.rule(rule),
                Item::At(rule) => self.at_rule(rule),
                Item::Declaration(declaration) => {
                    self.declaration(declaration);
                    if place + 1 < items.len() {
                        self.text.push(';');
                    }
                }
            }
        }
    }

    fn rule(&mut self, rule: &Rule<'_>) {
        self.selector(rule.prelude);
        self.block(&rule.block);
    }

    fn at_rule(&mut self, rule: &AtRule<'_>) {
        let name = rule.name.name().to_ascii_lowercase();
        // The server sends the sheet with its charset.
        if name == "charset" {
            return;
        }
        self.text.push_str(rule.name.text);
        if let Some(first) = rule.prelude.first() {
            // `@media(` has no blank. Otherwise the name needs one.
            if first.gap != Gap::None || !first.opens() {
                self.text.push(' ');
            }
            match &*name {
                "scope" => self.selector(rule.prelude),
                "keyframes" => self.pieces(rule.prelude, |writer, piece| {
                    writer.text.push_str(piece.text);
                    writer.end_name(piece.is_word());
                }),
                _ => self.plain(rule.prelude),
            }
        }
        match &rule.block {
            Some(block) => self.block(block),
            None => self.text.push(';'),
        }
    }

    fn block(&mut self, block: &[Item<'_>]) {
        self.text.push('{');
        self.items(block);
        self.text.push('}');
    }

    fn declaration(&mut self, declaration: &Declaration<'_>) {
        self.text.push_str(declaration.name.text);
        self.text.push(':');
        // The value of an empty custom property is one blank (CSS Variables 1, section 2).
        if declaration.value.is_empty() {
            self.text.push(' ');
        }
        let names = ["animation", "animation-name", "-webkit-animation", "-webkit-animation-name"];
        let is_animation = names.iter().any(|name| declaration.name.is(name));
        self.pieces(declaration.value, |writer, piece| {
            writer.text.push_str(piece.text);
            let is_own = is_animation && writer.names.animations.contains(&piece.text);
            writer.end_name(is_own);
        });
    }

    fn plain(&mut self, pieces: &[Piece<'_>]) {
        self.pieces(pieces, Self::piece);
    }

    fn piece(&mut self, piece: &Piece<'_>) {
        self.text.push_str(piece.text);
    }

    /// Writes a selector. Classes get the suffix, except those in `:global(..)`.
    fn selector(&mut self, pieces: &[Piece<'_>]) {
        if self.names.ending.is_none() {
            return self.plain(pieces);
        }
        let mut before: Option<&Piece<'_>> = None;
        let mut rest = pieces;
        while let [piece, after @ ..] = rest {
            rest = after;
            self.space(before, piece);
            let dot = before.replace(piece);
            if is_global(piece) {
                // `:is` keeps the global list one selector: `.own:global(a, b)`.
                self.text.push_str("is(");
                let (selectors, _) = inside(after);
                self.pieces_after(before, selectors, Self::piece);
                before = selectors.last().or(before);
                rest = &after[selectors.len()..];
                continue;
            }
            self.text.push_str(piece.text);
            self.end_name(dot.is_some_and(|dot| is_class(dot, piece)));
        }
    }

    /// Writes each token with `write`, and the white space that is needed.
    fn pieces(&mut self, pieces: &[Piece<'_>], write: impl Fn(&mut Self, &Piece<'_>)) {
        self.pieces_after(None, pieces, write);
    }

    fn pieces_after<'p>(
        &mut self,
        mut before: Option<&'p Piece<'p>>,
        pieces: &'p [Piece<'p>],
        write: impl Fn(&mut Self, &Piece<'_>),
    ) {
        for piece in pieces {
            self.space(before, piece);
            write(self, piece);
            before = Some(piece);
        }
    }

    /// Writes the white space before a token unless it is insignificant: next to a comma, `>` and
    /// `~`, after a colon, and inside of brackets.
    fn space(&mut self, before: Option<&Piece<'_>>, piece: &Piece<'_>) {
        let Some(before) = before else { return };
        if piece.comment {
            self.text.push_str("/**/");
        } else if piece.gap != Gap::None {
            let is_loose = |piece: &Piece<'_>| {
                piece.kind == PieceKind::Mark && [",", ">", "~"].contains(&piece.text)
            };
            let touches = is_loose(before)
                || is_loose(piece)
                || before.is(":")
                || before.opens()
                || piece.kind == PieceKind::Close
                || piece.is("!");
            if !touches {
                self.text.push(' ');
            }
        }
    }

    fn end_name(&mut self, is_own: bool) {
        if let Some(ending) = self.names.ending.as_deref().filter(|_| is_own) {
            self.text.push('_');
            self.text.push_str(ending);
        }
    }
}
