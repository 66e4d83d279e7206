//! A compiled module of an application with its source.

use std::sync::Arc;

use bine_script::Position;
use bine_tsx::Module;

/// A module and its source.
pub(super) struct SourceModule {
    pub(super) source: Arc<str>,
    pub(super) module: Module,
}

impl SourceModule {
    /// The line of a position with a marker, below a message.
    pub(super) fn shown_line(&self, file: &str, position: bine_tsx::Position) -> String {
        let bine_tsx::Position { line, column } = position;
        let position = Position { file: file.to_owned(), line, column };
        let excerpt = bine_script::excerpt(&self.source, &position).unwrap_or_default();
        excerpt.lines().fold(String::new(), |text, line| text + "\n  " + line)
    }
}

/// The path of a relative import, within the folder of the application. `None`: it leads outside,
/// which the engine reports when it resolves the import.
pub(super) fn resolved(base: &str, specifier: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
