//! [`Template`]: the constant parts of one piece of markup and the kinds of its holes, as text or as
//! the steps that build a tree.

use bine_vocabulary::is_void;

use crate::text::{escaped, literal};

/// The kind of a hole that has no value: the end of the page's `<head>`.
const END_OF_HEAD: &str = "h";

/// How the run-time uses a piece of markup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// It is written: `$html`.
    #[default]
    Text,
    /// It becomes the nodes of a tree: `$tree`.
    Tree,
}

/// The constant parts of one piece of markup, and the kinds of the holes between them.
///
/// The step of a tree begins with a character for its kind. A hole begins with a letter, as in
/// markup that is written.
#[derive(Debug)]
pub(super) struct Template {
    form: Form,
    pieces: Vec<String>,
    holes: Vec<String>,
    piece: String,
    steps: Vec<String>,
}

impl Template {
    pub(super) fn new(form: Form) -> Self {
        let (pieces, holes, steps) = (Vec::new(), Vec::new(), Vec::new());
        Self { form, pieces, holes, piece: String::new(), steps }
    }

    pub(super) fn doctype(&mut self) {
        match self.form {
            Form::Text => self.piece.push_str("<!DOCTYPE html>"),
            Form::Tree => self.steps.push("!".to_owned()),
        }
    }

    /// Opens an element. Its attributes follow, then [`Self::begin_content`].
    pub(super) fn open(&mut self, name: &str) {
        match self.form {
            Form::Text => self.piece.extend(["<", name]),
            Form::Tree => self.steps.push(format!("<{name}")),
        }
    }

    /// Adds a constant attribute.
    pub(super) fn attribute(&mut self, name: &str, value: &str) {
        match self.form {
            Form::Text => self.piece.extend([" ", name, "=\"", &escaped(value), "\""]),
            Form::Tree => self.steps.push(format!(".{name} {value}")),
        }
    }

    /// Ends the start tag. A void element ends with it.
    pub(super) fn begin_content(&mut self, name: &str) {
        match self.form {
            Form::Text => self.piece.push_str(if is_void(name) { " />" } else { ">" }),
            Form::Tree if is_void(name) => self.steps.push(">".to_owned()),
            Form::Tree => {}
        }
    }

    /// Adds the line feed that a parser drops. The writer of a tree adds it where it is needed.
    pub(super) fn dropped_line_feed(&mut self) {
        if self.form == Form::Text {
            self.piece.push('\n');
        }
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: &str) {
        match (self.form, self.steps.last_mut()) {
            _ if text.is_empty() => {}
            (Form::Text, _) => self.piece.push_str(&escaped(text)),
            (Form::Tree, Some(last)) if last.starts_with('\'') => last.push_str(text),
            (Form::Tree, _) => self.steps.push(format!("'{text}")),
        }
    }

    /// Adds text of `<script>` or `<style>`.
    pub(super) fn code(&mut self, code: &str) {
        match self.form {
            _ if code.is_empty() => {}
            Form::Text => self.piece.push_str(code),
            Form::Tree => self.steps.push(format!("\"{code}")),
        }
    }

    /// Closes an element that is not void.
    pub(super) fn close(&mut self, name: &str) {
        match self.form {
            Form::Text => {
                if name == "head" {
                    self.hole(END_OF_HEAD);
                }
                self.piece.extend(["</", name, ">"]);
            }
            Form::Tree => self.steps.push(">".to_owned()),
        }
    }

    /// The number of holes in markup that is written.
    pub(super) fn hole_count(&self) -> usize {
        self.holes.len()
    }

    /// Adds a hole.
    pub(super) fn hole(&mut self, kind: &str) {
        match self.form {
            Form::Text => {
                self.pieces.push(std::mem::take(&mut self.piece));
                self.holes.push(kind.to_owned());
            }
            Form::Tree => self.steps.push(kind.to_owned()),
        }
    }

    /// Whether it is the template of a tree.
    pub(super) fn is_tree(&self) -> bool {
        self.form == Form::Tree
    }

    /// The call that registers the template.
    pub(super) fn registration(&self, prefix: &str) -> String {
        let list = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| literal(text)).collect::<Vec<_>>().join(",")
        };
        match self.form {
            Form::Text => {
                let pieces = list(&mut self.pieces.iter().chain([&self.piece]));
                let holes = list(&mut self.holes.iter());
                format!("{prefix}markup([{pieces}],[{holes}])")
            }
            Form::Tree => format!("{prefix}shape([{}])", list(&mut self.steps.iter())),
        }
    }
}
