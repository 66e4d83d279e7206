//! The modules of one instance: who imports which, and why one could not be loaded.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::error::{Position, ScriptError};

/// Modules that only built-in modules may import.
const INTERNAL: &str = "bine:internal/";

/// Supplies the JavaScript of an application's modules.
pub trait ModuleLoader {
    /// Returns the JavaScript of a module. `path` is relative to the application's folder, has `/`
    /// between its parts and no `.` or `..` in it. Lines of error positions are those of the
    /// returned text.
    fn load(&self, path: &str) -> std::result::Result<String, LoadError>;

    /// Returns the JavaScript of a built-in module, `bine` or `bine:NAME`. Only built-in modules
    /// may import a name that begins with `bine:internal/`.
    fn load_built_in(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Why a loader cannot supply a module.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// There is no such file.
    NotFound,
    /// The file cannot be read or compiled.
    Invalid {
        /// The reason in words.
        message: String,
        /// The place of the fault.
        position: Option<Position>,
        /// The line of the fault with a marker.
        excerpt: Option<String>,
    },
}

/// The modules of one instance.
pub(crate) struct Modules {
    pub(crate) loader: Box<dyn ModuleLoader>,
    /// The first importer of each module; `None` for the one that the host has loaded.
    pub(crate) importers: RefCell<HashMap<String, Option<String>>>,
    /// The last module that could not be loaded.
    pub(crate) failure: RefCell<Option<ScriptError>>,
}

impl Modules {
    pub(crate) fn new(loader: Box<dyn ModuleLoader>) -> Self {
        Self { loader, importers: RefCell::default(), failure: RefCell::default() }
    }

    /// Records the module that the host loads.
    pub(crate) fn begin(&self, name: &str) {
        self.failure.take();
        self.importers.borrow_mut().entry(name.to_owned()).or_default();
    }

    /// The importing modules from the outermost one to `name`.
    fn chain(&self, name: &str) -> Vec<String> {
        let importers = self.importers.borrow();
        let mut chain = vec![name.to_owned()];
        let mut last = name;
        // A module has its importer since before it was imported, so the chain has no cycle.
        while let Some(Some(importer)) = importers.get(last) {
            chain.push(importer.clone());
            last = importer;
        }
        chain.reverse();
        chain
    }

    /// Adds what is known about a module that could not be loaded, if `error` reports it.
    pub(crate) fn explain(&self, error: ScriptError) -> ScriptError {
        match self.failure.take() {
            Some(failure) if failure.message == error.message => failure,
            _ => error,
        }
    }

    pub(crate) fn fail(&self, name: &str, error: ScriptError) {
        self.failure.replace(Some(ScriptError { imports: self.chain(name), ..error }));
    }
}

/// Whether a name denotes a built-in module.
pub(crate) fn is_built_in(name: &str) -> bool {
    name == "bine" || name.starts_with("bine:")
}

/// The path or name of the module that `base` imports as `specifier`.
pub(crate) fn resolve(base: &str, specifier: &str) -> std::result::Result<String, String> {
    if base.is_empty() {
        // The host loads this module itself.
        return Ok(specifier.to_owned());
    }
    if is_built_in(specifier) {
        if specifier.starts_with(INTERNAL) && !is_built_in(base) {
            return Err(format!("only built-in modules may import \"{specifier}\""));
        }
        return Ok(specifier.to_owned());
    }
    let is_relative = specifier.starts_with("./") || specifier.starts_with("../");
    if !is_relative || is_built_in(base) {
        return Err(format!(
            "\"{specifier}\" cannot be imported: an import names a file of the application, \
             beginning with ./ or ../, or a built-in module such as \"bine\""
        ));
    }
    if specifier.contains(['\\', '?', '#', '%', '\0']) {
        return Err(format!("\"{specifier}\" has a character that file names must not have"));
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                let outside = format!("\"{specifier}\" is outside of the application's folder");
                parts.pop().ok_or(outside)?;
            }
            "" => return Err(format!("\"{specifier}\" has an empty part")),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_imports_inside_of_the_folder() {
        let check = |base, specifier, expected: std::result::Result<&str, &str>| {
            let found = resolve(base, specifier);
            match expected {
                Ok(path) => assert_eq!(found.as_deref(), Ok(path)),
                Err(part) => {
                    let has_part = found.as_ref().is_err_and(|text| text.contains(part));
                    assert!(has_part, "{found:?}");
                }
            }
        };
        check("index.tsx", "./a.ts", Ok("a.ts"));
        check("rooms/[id].tsx", "../lib/./a.ts", Ok("lib/a.ts"));
        check("rooms/[id].tsx", "./b.ts", Ok("rooms/b.ts"));
        check("index.tsx", "bine", Ok("bine"));
        check("index.tsx", "bine:html", Ok("bine:html"));
        check("bine", "bine:internal/store", Ok("bine:internal/store"));
        check("index.tsx", "bine:internal/store", Err("only built-in modules"));
        check("bine", "./index.tsx", Err("cannot be imported"));
        check("index.tsx", "../secret.ts", Err("outside"));
        check("a/b.ts", "../../secret.ts", Err("outside"));
        check("index.tsx", "./a//b.ts", Err("empty part"));
        check("index.tsx", "./a%2e.ts", Err("character"));
        check("index.tsx", "./a\\b.ts", Err("character"));
        for specifier in ["react", "/etc/passwd", "https://a/b.js", "file:///a", "node:fs", ""] {
            check("index.tsx", specifier, Err("cannot be imported"));
        }
    }
}
