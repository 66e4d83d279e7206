//! The linker of files of the browser: it replaces the specifiers of their imports by URLs.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::browser::is_browser_file;
use crate::compile::Module;
use crate::facts::{Import, ImportKind};
use crate::scan::BROWSER;
use crate::source::Position;

/// The exports of the script of pages.
const WORDS: [&str; 4] = ["call", "follow", "navigate", "on"];

/// The host of a linker: it has the compiled files, and serves the linked ones.
pub trait BrowserHost {
    /// The compiled file; `None` if missing, which the host reports. `importer` imports it.
    fn module(&mut self, file: &str, importer: Option<(&str, Position)>) -> Option<&Module>;

    /// The name of the file that a file imports; `None`: it is outside of the folders of the host.
    fn resolve(&self, file: &str, specifier: &str) -> Option<String>;

    /// The specifier by which browsers import a module of the server, `"bine:services"` or
    /// `"bine:browser"`.
    ///
    /// # Errors
    ///
    /// The module cannot be imported in this way, in a sentence.
    fn built_in(&mut self, file: &str, import: &Import) -> Result<String, String>;

    /// Keeps a linked file to be served, and returns its name in the URL, which has a hash of the code.
    /// All files are in one folder.
    fn keep(&mut self, file: &str, code: String) -> String;

    /// Reports an error.
    fn refuse(&mut self, file: &str, position: Position, reason: &str);
}

/// Links files `.browser.ts`, each one once.
#[derive(Debug, Default)]
pub struct BrowserLinker {
    files: HashMap<String, LinkState>,
}

/// A file that the linker has visited.
#[derive(Clone, Debug)]
enum LinkState {
    /// Its imports are being resolved.
    Begun,
    Failed,
    /// Its name in the URL.
    Linked(String),
}

impl BrowserLinker {
    /// Links a file and what it imports. Returns its name in the URL; `None`: it cannot be linked,
    /// and the host has the reason. `importer`: the place that imports it.
    pub fn link(
        &mut self,
        host: &mut impl BrowserHost,
        file: &str,
        importer: Option<(&str, Position)>,
    ) -> Option<String> {
        match (self.files.get(file), importer) {
            (Some(LinkState::Linked(name)), _) => return Some(name.clone()),
            (Some(LinkState::Begun), Some((importer, position))) => {
                let reason = "files `.browser.ts` import each other in a circle: move what both use into a third one";
                host.refuse(importer, position, reason);
                return None;
            }
            (Some(_), _) => return None,
            (None, _) => {}
        }
        self.files.insert(file.to_owned(), LinkState::Begun);
        let linked = self.code(host, file, importer).map(|code| host.keep(file, code));
        let state = linked.clone().map_or(LinkState::Failed, LinkState::Linked);
        self.files.insert(file.to_owned(), state);
        linked
    }

    /// The code of a file, with its imports resolved.
    fn code(
        &mut self,
        host: &mut impl BrowserHost,
        file: &str,
        importer: Option<(&str, Position)>,
    ) -> Option<String> {
        let module = host.module(file, importer)?;
        if module.has_markup() {
            let position = Position { line: 1, column: 1 };
            host.refuse(
                file,
                position,
                "a file of the browser has no markup: the server writes it",
            );
            return None;
        }
        let (code, imports) = (module.code.clone(), module.facts.imports.clone());
        let (mut specifiers, mut is_complete) = (Vec::new(), true);
        for import in imports {
            match self.specifier(host, file, &import) {
                Some(specifier) => specifiers.push((import.position, specifier)),
                None => is_complete = false,
            }
        }
        is_complete.then(|| with_specifiers(&code, specifiers))
    }

    fn specifier(
        &mut self,
        host: &mut impl BrowserHost,
        file: &str,
        import: &Import,
    ) -> Option<String> {
        let Import { specifier, position, .. } = import;
        let reason = match import.kind {
            ImportKind::Relative if is_browser_file(specifier) => {
                match host.resolve(file, specifier) {
                    Some(path) => {
                        let name = self.link(host, &path, Some((file, *position)))?;
                        return Some(format!("./{name}"));
                    }
                    None => format!("\"{specifier}\" is outside of the application's folder"),
                }
            }
            ImportKind::Services | ImportKind::Browser => {
                match check_names(import).and_then(|()| host.built_in(file, import)) {
                    Ok(specifier) => return Some(specifier),
                    Err(reason) => reason,
                }
            }
            _ => format!(
                "a file of the browser imports only others whose names end with `.browser.ts`, \"bine:services\" and \"{BROWSER}\": pass it what it needs, and call services"
            ),
        };
        host.refuse(file, *position, &reason);
        None
    }
}

/// Checks the imported names of a module of the server.
fn check_names(import: &Import) -> Result<(), String> {
    let Import { specifier, names, .. } = import;
    if import.kind == ImportKind::Services {
        let is_whole = names.is_empty() || names.iter().any(|name| name == "*");
        return if is_whole {
            Err(format!(
                "import the services by their names: `import {{ post }} from \"{specifier}\"`"
            ))
        } else {
            Ok(())
        };
    }
    match names.iter().find(|name| *name != "*" && !WORDS.contains(&name.as_str())) {
        Some(name) => {
            Err(format!("\"{specifier}\" has no `{name}`: it has `{}`", WORDS.join("`, `")))
        }
        None => Ok(()),
    }
}

/// The code with other specifiers at the places of their quotes.
fn with_specifiers(code: &str, mut specifiers: Vec<(Position, String)>) -> String {
    // From the last one on, so that the columns of the others stay.
    specifiers.sort_by_key(|(position, _)| Reverse(*position));
    let mut lines: Vec<String> = code.split('\n').map(str::to_owned).collect();
    for (Position { line, column }, specifier) in specifiers {
        let Some(line) = lines.get_mut(line as usize - 1) else { continue };
        let mut from_quote = line.char_indices().skip(column as usize - 1);
        let Some((start, quote)) = from_quote.next() else { continue };
        let mut is_escaped = false;
        let end = from_quote.find(|(_, letter)| {
            let is_end = !is_escaped && *letter == quote;
            is_escaped = !is_escaped && *letter == '\\';
            is_end
        });
        let Some((end, _)) = end else { continue };
        line.replace_range(start..=end, &format!("\"{specifier}\""));
    }
    lines.join("\n")
}

/// The hash of a module of the browser as a part of its URL: FNV-1a with 64 bits in base64url. The
/// author of the program chooses the text, so no attacker matters. It is part of every handler in a
/// page, so it is short.
pub fn browser_hash(code: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = code.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let digit = |place: u32| char::from(DIGITS[(hash >> (6 * place)) as usize & 63]);
    (0..11).rev().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::compile::compile;

    /// Files, and the linker's messages and output.
    struct Files {
        modules: HashMap<String, Module>,
        report: String,
    }

    impl BrowserHost for Files {
        fn module(&mut self, file: &str, _: Option<(&str, Position)>) -> Option<&Module> {
            self.modules.get(file)
        }

        fn resolve(&self, _: &str, specifier: &str) -> Option<String> {
            specifier.strip_prefix("./").map(str::to_owned)
        }

        fn built_in(&mut self, _: &str, import: &Import) -> Result<String, String> {
            match import.names.join(" ").as_str() {
                "lost" => Err("there is no `lost`".to_owned()),
                names => Ok(format!("/{} {names}", import.specifier.replace(':', "-"))),
            }
        }

        fn keep(&mut self, file: &str, code: String) -> String {
            let _ = write!(self.report, "{file}:\n{code}");
            file.replace(".browser.ts", ".js")
        }

        fn refuse(&mut self, file: &str, position: Position, reason: &str) {
            let Position { line, column } = position;
            let _ = writeln!(self.report, "{file}:{line}:{column}: {reason}");
        }
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &str) {
        let modules = files.iter().map(|(name, source)| {
            ((*name).to_owned(), compile(name, source).expect("a valid module"))
        });
        let mut host = Files { modules: modules.collect(), report: String::new() };
        let linked = BrowserLinker::default().link(&mut host, files[0].0, None);
        assert_eq!(host.report, expected);
        assert_eq!(linked.is_some(), expected.contains("a.browser.ts:\n"));
    }

    #[test]
    fn replaces_the_specifiers_of_imports() {
        check(
            &[
                (
                    "a.browser.ts",
                    "import { b } from './b.browser.ts'; import { one as two } from \"bine:services\"; b;\n/* \u{fc} */ export { call } from \"bine:browser\"; export * from \"./\\u0062.browser.ts\";\n",
                ),
                ("b.browser.ts", "export const b: number = 1;\n"),
            ],
            "b.browser.ts:\nexport const b         = 1;\na.browser.ts:\n\
             import { b } from \"./b.js\"; import { one as two } from \"/bine-services one\"; b;\n/* \u{fc} */ export { call } from \"/bine-browser call\"; export * from \"./b.js\";\n",
        );
    }

    #[test]
    fn reports_imports_with_their_places() {
        check(
            &[
                (
                    "a.browser.ts",
                    "import \"./b.browser.ts\";\nimport { page } from \"bine\"; import { lost } from \"bine:services\"; import \"./c.ts\"; import \"../d.browser.ts\";\nimport * as all from \"bine:services\"; import { off } from \"bine:browser\";\n",
                ),
                ("b.browser.ts", "import \"./a.browser.ts\";\n"),
            ],
            "b.browser.ts:1:8: files `.browser.ts` import each other in a circle: move what both use into a third one\n\
             a.browser.ts:2:22: a file of the browser imports only others whose names end with `.browser.ts`, \"bine:services\" and \"bine:browser\": pass it what it needs, and call services\n\
             a.browser.ts:2:51: there is no `lost`\n\
             a.browser.ts:2:75: a file of the browser imports only others whose names end with `.browser.ts`, \"bine:services\" and \"bine:browser\": pass it what it needs, and call services\n\
             a.browser.ts:2:92: \"../d.browser.ts\" is outside of the application's folder\n\
             a.browser.ts:3:22: import the services by their names: `import { post } from \"bine:services\"`\n\
             a.browser.ts:3:59: \"bine:browser\" has no `off`: it has `call`, `follow`, `navigate`, `on`\n",
        );
    }

    #[test]
    fn hashes_differ_with_the_code() {
        assert_eq!(browser_hash("").len(), 11);
        assert_ne!(browser_hash("a"), browser_hash("b"));
    }
}
