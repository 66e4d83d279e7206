//! Rule: inside a crate, sibling modules do not import each other in a cycle.
//!
//! Modules are siblings if they have the same parent: two files, a file and a folder, two folders.
//! The rule holds at every level of `crates/*/src`. Tests do not count. A name that a module
//! re-exports counts as an import of the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::Rust;
use super::{Complaint, File, Tree};

/// Cycles that stay, each with its reason. The list may only shrink.
const EXCEPTIONS: [Exception; 2] = [
    // A page can be frozen or become a tree: hidden methods of the traits of pages name types that
    // implement these traits.
    Exception {
        folder: "crates/html/src",
        modules: &[
            "attribute",
            "content",
            "frozen",
            "hole",
            "page",
            "raw",
            "region",
            "render",
            "show",
            "tree",
            "url_filter",
            "writer",
        ],
    },
    // A node holds an element, and an element holds nodes.
    Exception {
        folder: "crates/html/src/tree",
        modules: &["element", "name", "node", "selector", "value", "walk"],
    },
];

/// A cycle that stays.
struct Exception {
    /// The folder of the modules, like `crates/http/src`.
    folder: &'static str,
    /// The names of all modules in the cycle, sorted.
    modules: &'static [&'static str],
}

/// The most re-exports that are followed from one name to its definition.
const MAX_REEXPORTS: usize = 8;

/// A path in a crate, without `crate`.
type Path = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
struct Crate<'t> {
    files: BTreeMap<Path, &'t File>,
    /// The imports of each module.
    imports: BTreeMap<Path, Vec<Path>>,
    /// The definition of each name that a module re-exports.
    reexports: BTreeMap<(Path, String), Path>,
}

/// The imports between the modules of one folder, each with an example.
pub(super) type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Reports each cycle that is not an exception, and each exception that is not needed.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let exists = |one: &&Exception| tree.holds(one.folder);
    let mut unused: Vec<&Exception> = EXCEPTIONS.iter().filter(exists).collect();
    for (folder, files) in crates(tree) {
        for (level, edges) in Crate::read(files).edges() {
            let place = [std::slice::from_ref(&folder), &level[..]].concat().join("/");
            for cycle in cycles(&edges) {
                let before = unused.len();
                unused.retain(|one| one.folder != place || one.modules != cycle);
                if unused.len() == before {
                    complaints.push(Complaint {
                        path: place.clone(),
                        line: 0,
                        what: describe(&cycle, &edges),
                    });
                }
            }
        }
    }
    for Exception { folder, modules } in unused {
        let what = format!(
            "there is no cycle of {} any more; remove it from xtask/src/tidy/modules.rs",
            modules.join(", ")
        );
        complaints.push(Complaint { path: (*folder).to_owned(), line: 0, what });
    }
}

/// The imports between the top-level modules of the crate at `folder`, like `crates/http/src`.
pub(super) fn root_edges(tree: &Tree, folder: &str) -> Edges {
    let files = crates(tree).remove(folder).unwrap_or_default();
    Crate::read(files).edges().remove(&Path::new()).unwrap_or_default()
}

/// The files of each crate by their module paths, without tests.
fn crates(tree: &Tree) -> BTreeMap<String, BTreeMap<Path, &File>> {
    let mut crates: BTreeMap<String, BTreeMap<Path, &File>> = BTreeMap::new();
    for file in &tree.files {
        let Some((name, rest)) =
            file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let Some(rest) = rest.strip_suffix(".rs") else { continue };
        let mut path: Path = rest.split('/').map(str::to_owned).collect();
        if path.iter().any(|part| matches!(&**part, "tests" | "testing")) {
            continue;
        }
        if matches!(path.last().map(String::as_str), Some("lib" | "main" | "mod")) {
            path.pop();
        }
        crates.entry(format!("crates/{name}/src")).or_default().insert(path, file);
    }
    crates
}

impl<'t> Crate<'t> {
    fn read(files: BTreeMap<Path, &'t File>) -> Self {
        let mut own = Self { files, ..Self::default() };
        let modules_for_tests: Vec<Path> =
            own.files.iter().flat_map(|(module, file)| modules_for_tests(module, file)).collect();
        own.files
            .retain(|path, _| !modules_for_tests.iter().any(|module| path.starts_with(module)));
        let modules: Vec<(Path, &File)> =
            own.files.iter().map(|(path, file)| (path.clone(), *file)).collect();
        for (module, file) in modules {
            let Some(rust) = &file.rust else { continue };
            let code = without_tests(rust);
            let mut imports = Vec::new();
            let mut rest = String::with_capacity(code.len());
            for (statement, is_public) in statements(&code, &mut rest) {
                for tree in expand(&statement) {
                    let (path, alias) = match tree.split_once(" as ") {
                        Some((path, alias)) => (path.trim().to_owned(), Some(alias.trim())),
                        None => (tree.clone(), None),
                    };
                    let segments: Vec<&str> = path.split("::").map(str::trim).collect();
                    let Some(target) = own.resolve(&module, &segments) else { continue };
                    if is_public && let Some(last) = target.last() {
                        let name = alias.unwrap_or(last).to_owned();
                        own.reexports.insert((module.clone(), name), target.clone());
                    }
                    imports.push(target);
                }
            }
            for path in paths(&rest) {
                let segments: Vec<&str> = path.split("::").collect();
                imports.extend(own.resolve(&module, &segments));
            }
            own.imports.insert(module, imports);
        }
        own
    }

    /// The path from the root of the crate; `None`: the path is of a different crate, or local.
    fn resolve(&self, module: &[String], segments: &[&str]) -> Option<Path> {
        let tail = |skip: usize| segments[skip..].iter().map(|part| (*part).to_owned());
        match *segments.first()? {
            "crate" => Some(tail(1).collect()),
            "self" => Some(module.iter().cloned().chain(tail(1)).collect()),
            "super" => {
                let up = segments.iter().take_while(|part| **part == "super").count();
                let base = module.get(..module.len().checked_sub(up)?)?;
                Some(base.iter().cloned().chain(tail(up)).collect())
            }
            name => {
                let child: Path = module.iter().cloned().chain([name.to_owned()]).collect();
                let is_module = self.files.keys().any(|path| path.starts_with(&child));
                is_module.then(|| module.iter().cloned().chain(tail(0)).collect())
            }
        }
    }

    /// The module that defines what is at a path.
    fn owner(&self, path: &[String]) -> Path {
        let mut path = path.to_vec();
        for _ in 0..MAX_REEXPORTS {
            let length = (0..=path.len()).rev().find(|length| self.has_module(&path[..*length]));
            let module = &path[..length.unwrap_or_default()];
            let Some(name) = path.get(module.len()) else { return module.to_vec() };
            let Some(target) = self.reexports.get(&(module.to_vec(), name.clone())) else {
                return module.to_vec();
            };
            let next: Path = target.iter().chain(&path[module.len() + 1..]).cloned().collect();
            if next == path {
                return module.to_vec();
            }
            path = next;
        }
        path
    }

    fn has_module(&self, path: &[String]) -> bool {
        self.files.contains_key(path)
    }

    /// The imports between siblings, for each folder of the crate.
    fn edges(&self) -> BTreeMap<Path, Edges> {
        let mut levels: BTreeMap<Path, Edges> = BTreeMap::new();
        for (module, imports) in &self.imports {
            for import in imports {
                let owner = self.owner(import);
                let shared = module.iter().zip(&owner).take_while(|(one, other)| one == other);
                let level = shared.count();
                if let (Some(from), Some(to)) = (module.get(level), owner.get(level)) {
                    let example = format!("{} uses {}", module.join("::"), import.join("::"));
                    let edges = levels.entry(module[..level].to_vec()).or_default();
                    edges.entry(from.clone()).or_default().entry(to.clone()).or_insert(example);
                }
            }
        }
        levels
    }
}

/// The modules that a file declares for tests alone.
fn modules_for_tests(module: &[String], file: &File) -> Vec<Path> {
    let code = file.rust.as_ref().map_or("", |rust| &rust.code);
    let after = code.split("#[cfg(test)]").skip(1);
    let names = after.filter_map(|rest| {
        let rest = rest.trim_start().trim_start_matches("pub(crate) ").strip_prefix("mod ")?;
        let (name, _) = rest.split_once(';')?;
        (!name.contains(['{', ' '])).then(|| name.to_owned())
    });
    names.map(|name| module.iter().cloned().chain([name]).collect()).collect()
}

/// The code of a file with items under `#[cfg(test)]` replaced by blanks.
fn without_tests(rust: &Rust) -> String {
    let mut code = rust.code.clone();
    let mut from = 0;
    while let Some(at) = code[from..].find("#[cfg(test)]").map(|at| at + from) {
        let bytes = code.as_bytes();
        let mut end = at;
        while end < bytes.len() && bytes[end] != b';' {
            match bytes[end] {
                b'{' => {
                    end = rust.behind_bracket(end);
                    break;
                }
                b'[' | b'(' => end = rust.behind_bracket(end),
                _ => end += 1,
            }
        }
        let end = end.min(code.len());
        let blanks: String =
            code[at..end].chars().map(|char| if char == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(at..end, &blanks);
        from = at + 1;
    }
    code
}

/// The trees of all `use` statements, and whether each is public. All other code is appended to
/// `rest`.
fn statements(code: &str, rest: &mut String) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut left = code;
    while let Some(at) = find_word(left, "use") {
        let line = left[..at].rfind(['\n', ';', '{', '}']).map_or(0, |end| end + 1);
        let before = left[line..at].trim();
        // `impl Trait + use<'a>` is no `use` statement.
        let is_statement = (before.is_empty() || before.starts_with("pub"))
            && !left[at + 3..].trim_start().starts_with('<');
        let Some(end) = left[at..].find(';').map(|end| end + at).filter(|_| is_statement) else {
            rest.push_str(&left[..at + 3]);
            left = &left[at + 3..];
            continue;
        };
        rest.push_str(&left[..line]);
        found.push((left[at + 3..end].trim().to_owned(), before.starts_with("pub")));
        left = &left[end..];
    }
    rest.push_str(left);
    found
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

/// The paths of a use tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, body)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let body = body.trim_end().strip_suffix('}').unwrap_or(body);
    let (mut depth, mut begin, mut parts) = (0_usize, 0, Vec::new());
    for (at, char) in body.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&body[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&body[begin..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    let inner = parts.flat_map(expand);
    inner.map(|path| format!("{}{path}", prefix.trim())).collect()
}

/// The paths with at least two segments in code that has no `use` statements.
fn paths(code: &str) -> Vec<&str> {
    let is_path = |char: char| char.is_alphanumeric() || char == '_' || char == ':';
    let words = code.split(|char: char| !is_path(char));
    let words = words.map(|word| word.trim_end_matches(':'));
    words.filter(|word| word.contains("::") && !word.starts_with(':')).collect()
}

/// The sets of modules that import each other, each sorted.
fn cycles(edges: &Edges) -> Vec<Vec<String>> {
    let reached = |from: &str| -> BTreeSet<&str> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for to in edges.get(next).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(&**to) {
                    open.push(to);
                }
            }
        }
        reached
    };
    let all: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|name| (&**name, reached(name))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (name, own) in &all {
        let is_known = found.iter().any(|cycle| cycle.iter().any(|one| one == name));
        if is_known || !own.contains(name) {
            continue;
        }
        let both =
            own.iter().filter(|other| all.get(*other).is_some_and(|back| back.contains(name)));
        found.push(both.map(|name| (*name).to_owned()).collect());
    }
    found
}

fn describe(cycle: &[String], edges: &Edges) -> String {
    let mut what = format!("the modules {} import each other in a cycle:", cycle.join(", "));
    for to in edges.iter().filter(|(from, _)| cycle.contains(from)).map(|(_, to)| to) {
        for example in to.iter().filter(|(to, _)| cycle.contains(to)).map(|(_, example)| example) {
            what.push(' ');
            what.push_str(example);
            what.push(';');
        }
    }
    what.trim_end_matches(';').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::check as check_rule;
    use super::*;

    #[test]
    fn accepts_layers() {
        check_rule(
            check,
            &[
                ("crates/a/src/lib.rs", "mod low;\nmod high;\npub use low::Low;\n"),
                ("crates/a/src/low.rs", "pub struct Low;\n"),
                ("crates/a/src/high.rs", "use crate::Low;\nuse crate::low::{self, Low as L};\n"),
            ],
            &[],
        );
    }

    #[test]
    fn reports_a_cycle_of_imports_paths_and_reexports() {
        check_rule(
            check,
            &[
                ("crates/a/src/lib.rs", "mod b;\nmod c;\nmod d;\npub use d::Third;\n"),
                ("crates/a/src/b.rs", "use crate::{c::{First, Other}};\n"),
                ("crates/a/src/c.rs", "fn f() { super::d::g(); }\n"),
                ("crates/a/src/d.rs", "use crate::b::Second;\npub struct Third;\n"),
                ("crates/a/src/e.rs", "use crate::Third;\n"),
            ],
            &[
                "crates/a/src: the modules b, c, d import each other in a cycle: b uses c::First; c uses d::g; d uses b::Second",
            ],
        );
    }

    #[test]
    fn reports_a_cycle_inside_a_folder() {
        check_rule(
            check,
            &[
                ("crates/a/src/b/mod.rs", "mod c;\nmod d;\nfn f() { c::g() }\n"),
                ("crates/a/src/b/c.rs", "use super::d::D;\n"),
                ("crates/a/src/b/d.rs", "use super::c::C;\n"),
            ],
            &[
                "crates/a/src/b: the modules c, d import each other in a cycle: b::c uses b::d::D; b::d uses b::c::C",
            ],
        );
    }

    #[test]
    fn reports_exceptions_that_are_not_needed() {
        check_rule(
            check,
            &[("crates/html/src/tree/node.rs", "")],
            &EXCEPTIONS.map(|Exception { folder, modules }| {
                format!(
                    "{folder}: there is no cycle of {} any more; remove it from xtask/src/tidy/modules.rs",
                    modules.join(", ")
                )
            })
            .each_ref()
            .map(String::as_str),
        );
    }

    #[test]
    fn leaves_tests_comments_and_other_crates_out() {
        check_rule(
            check,
            &[
                ("crates/a/src/b.rs", "use crate::c::C;\n"),
                (
                    "crates/a/src/c.rs",
                    "//! See crate::b::B.\nuse std::b::B;\n#[cfg(test)]\nuse crate::b::B;\n\
                     #[cfg(test)]\nmod tests { use crate::b::B; }\nconst TEXT: &str = \"crate::b::B\";\n",
                ),
                ("crates/a/src/c/tests.rs", "use crate::b::B;\n"),
                ("crates/a/src/lib.rs", "mod b;\nmod c;\n#[cfg(test)]\nmod simulation;\n"),
                ("crates/a/src/simulation/d.rs", "use super::e::E;\n"),
                ("crates/a/src/simulation/e.rs", "use super::d::D;\n"),
                ("bench/src/b.rs", "use crate::c::C;\n"),
                ("bench/src/c.rs", "use crate::b::B;\n"),
            ],
            &[],
        );
    }
}
