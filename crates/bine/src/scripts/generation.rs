//! The compiled modules of an application. A change of a file makes a new generation, which all event
//! loops load.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bine_script::{LoadError, ModuleLoader, Position};
use bine_tsx::{BrowserSource, ImportKind, compile};

use super::app_settings::AppSettings;
use super::browser_files::BrowserFile;
use super::browser_linker::link;
use super::channels::segment_of;
use super::folders::{AppFolder, PageFile};
use super::source_module::{SourceModule, resolved};
use super::{service_calls, words};
use crate::service::in_process::ServiceDirectory;

/// Bytes of one file.
const MAX_FILE: u64 = bine_tsx::MAX_SOURCE as u64;
/// Files of one application.
const MAX_FILES: usize = 1000;
/// The module that imports all pages. No file has this name.
pub(super) const ENTRY: &str = "(application)";
/// The page for errors.
const ERROR_PAGE: &str = "_error.tsx";
/// The start script of a site.
pub(super) const START: &str = "start.ts";

/// All modules of an application at one time.
pub(super) struct Generation {
    /// Generations of one application count from 1.
    pub(super) number: u64,
    pub(super) app: AppFolder,
    modules: HashMap<String, SourceModule>,
    /// The text of the entry module.
    entry: String,
    /// A hash of all sources and settings: equal files give equal versions, also after a restart.
    pub(super) version: u64,
    /// The modules of the browser.
    pub(super) browser: Vec<BrowserFile>,
    /// When the files were last changed.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

/// Properties that change with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

/// Why an application cannot be compiled: all errors, in the words of the compiler.
#[derive(Clone, Debug)]
pub(super) struct CompileFailure {
    /// The text of each error: file, line, column, message and excerpt.
    pub(super) errors: Vec<String>,
    /// The files that were read, so that a change of one is noticed.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let facts = fs::metadata(path).ok()?;
        Some(Self { modified: facts.modified().ok(), length: facts.len() })
    }
}

fn have_changed(stamps: &[(PathBuf, Option<Stamp>)]) -> bool {
    stamps.iter().any(|(path, stamp)| Stamp::of(path) != *stamp)
}

impl CompileFailure {
    fn new(errors: Vec<String>, stamps: Vec<(PathBuf, Option<Stamp>)>) -> Self {
        Self { errors, stamps }
    }

    /// The text to print.
    pub(super) fn message(&self) -> String {
        self.errors.join("\n")
    }

    /// The number of files that were read.
    pub(super) fn files(&self) -> usize {
        self.stamps.len()
    }

    /// Whether a file has changed since.
    pub(super) fn is_outdated(&self) -> bool {
        have_changed(&self.stamps)
    }
}

impl Generation {
    /// Reads and compiles all pages of an application, its layouts and what they import.
    /// `services`: those of the program in Rust, for handlers in the browser.
    pub(super) fn compile(
        number: u64,
        app: AppFolder,
        services: Option<&ServiceDirectory>,
    ) -> Result<Self, Box<CompileFailure>> {
        let mut compiler = Compiler::new(&app.folder);
        let layouts = app.files.iter().filter_map(|page| page.layout.clone());
        let mut roots: Vec<String> = app.files.iter().map(|page| page.file.clone()).collect();
        roots.extend(layouts);
        if app.folder.join(ERROR_PAGE).is_file() {
            roots.push(ERROR_PAGE.to_owned());
        }
        roots.sort_unstable();
        roots.dedup();
        for root in &roots {
            compiler.module(root, None);
        }
        let Compiler { mut modules, stamps, errors, .. } = compiler;
        let errors = if errors.is_empty() { check(&app, &modules) } else { errors };
        let linked = match errors {
            errors if !errors.is_empty() => Err(errors),
            _ => link(&app.url(), &segment_of(&app), &mut modules, services),
        };
        let browser = linked.map_err(|errors| CompileFailure::new(errors, stamps.clone()))?;
        let (entry, version) = (entry(&app, &modules), version(&app, &modules));
        Ok(Self { number, app, modules, entry, version, browser, stamps })
    }

    /// Reads and compiles the start script of a site, and what it imports.
    pub(super) fn compile_start(number: u64, folder: &Path) -> Result<Self, Box<CompileFailure>> {
        let app = AppFolder {
            path: String::new(),
            folder: folder.to_owned(),
            settings: AppSettings::default(),
            files: Vec::new(),
        };
        let mut compiler = Compiler::new(folder);
        compiler.module(START, None);
        let Compiler { modules, stamps, errors, .. } = compiler;
        let errors = if errors.is_empty() { check(&app, &modules) } else { errors };
        if !errors.is_empty() {
            return Err(Box::new(CompileFailure::new(errors, stamps)));
        }
        let entry = format!(
            "import {{ $start }} from \"bine:start-entry\";import \"./{START}\";export default $start();"
        );
        let version = version(&app, &modules);
        Ok(Self { number, app, modules, entry, version, browser: Vec::new(), stamps })
    }

    /// The paths of all modules in the folder.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().map(String::as_str)
    }

    /// Whether a file has changed since.
    pub(super) fn is_outdated(&self) -> bool {
        have_changed(&self.stamps)
    }

    /// All services: the exported name, the module and the shape of the argument.
    pub(super) fn services(&self) -> impl Iterator<Item = (&str, &bine_tsx::Service)> {
        self.modules.iter().flat_map(|(file, module)| {
            module.module.facts.services.iter().map(move |service| (file.as_str(), service))
        })
    }

    /// The first import of a service of Rust that the program does not have, or else the first call of
    /// one with an argument that it does not take: the place and the correction.
    pub(super) fn service_mistake(&self, services: Option<&ServiceDirectory>) -> Option<String> {
        let mut files: Vec<_> = self.modules.iter().collect();
        files.sort_unstable_by_key(|(file, _)| file.as_str());
        let missing = |import: &bine_tsx::Import| {
            let names = import.names.iter().filter(|name| *name != "*");
            let reason = |name: &String| match services {
                Some(services) => services.named(name).err(),
                None => Some(format!("the program has no service `{name}`: it has none in Rust")),
            };
            Some((import.position, names.into_iter().find_map(reason)?))
        };
        let in_file = |facts: &bine_tsx::Facts| {
            let mut imports =
                facts.imports.iter().filter(|import| import.kind == ImportKind::Services);
            imports.find_map(missing).or_else(|| {
                let mut calls = facts.service_calls.iter();
                calls.find_map(|call| service_calls::mistake(call, services))
            })
        };
        files.into_iter().find_map(|(file, own)| {
            let (bine_tsx::Position { line, column }, reason) = in_file(&own.module.facts)?;
            Some(format!("{}:{line}:{column}: {reason}", self.shown(file)))
        })
    }

    /// The position in the source of a position in the code, and the line with a marker.
    pub(super) fn in_source(&self, position: &Position) -> Option<(Position, Option<String>)> {
        let SourceModule { source, module } = self.modules.get(&position.file)?;
        let place = bine_tsx::Position { line: position.line, column: position.column };
        let place = module.source_position(place);
        let file = self.shown(&position.file);
        let found = Position { file, line: place.line, column: place.column };
        let excerpt = bine_script::excerpt(source, &found);
        Some((found, excerpt))
    }

    /// The name of a file in messages: below the root of the site.
    fn shown(&self, file: &str) -> String {
        match self.app.path.as_str() {
            "" => file.to_owned(),
            path => format!("{path}/{file}"),
        }
    }
}

struct Compiler<'c> {
    folder: &'c Path,
    modules: HashMap<String, SourceModule>,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    errors: Vec<String>,
}

impl<'c> Compiler<'c> {
    fn new(folder: &'c Path) -> Self {
        Self { folder, modules: HashMap::new(), stamps: Vec::new(), errors: Vec::new() }
    }

    /// Compiles a module and its imports. `importer`: the place of the import, for a missing file.
    fn module(&mut self, file: &str, importer: Option<String>) {
        // A list in place of recursion: imports may be nested as deep as there are files.
        let mut left = vec![(file.to_owned(), importer)];
        while let Some((file, importer)) = left.pop() {
            if self.modules.contains_key(&file) {
                continue;
            }
            if self.stamps.len() >= MAX_FILES {
                self.errors
                    .push(format!("{file}: the application has more than {MAX_FILES} modules"));
                return;
            }
            let path = self.folder.join(&file);
            // The stamp is read first: a change during the read leads to one more generation.
            self.stamps.push((path.clone(), Stamp::of(&path)));
            let source = match read(&path) {
                Ok(source) => source,
                Err(reason) => {
                    let place =
                        importer.map_or_else(|| file.clone(), |place| format!("{place}: {file}"));
                    self.errors.push(format!("{place}: {reason}"));
                    continue;
                }
            };
            match compile(&file, &source) {
                Ok(module) => {
                    for import in &module.facts.imports {
                        if import.kind == ImportKind::Relative
                            && let Some(path) = resolved(&file, &import.specifier)
                        {
                            let bine_tsx::Position { line, column } = import.position;
                            left.push((path, Some(format!("{file}:{line}:{column}"))));
                        }
                    }
                    let browser = module.browser.as_ref();
                    for import in browser.map_or(&[][..], |browser| &browser.imports) {
                        if let BrowserSource::Browser(specifier) = &import.source
                            && let Some(path) = resolved(&file, specifier)
                        {
                            let bine_tsx::Position { line, column } = import.position;
                            left.push((path, Some(format!("{file}:{line}:{column}"))));
                        }
                    }
                    self.modules.insert(file, SourceModule { source: source.into(), module });
                }
                Err(errors) => self.errors.extend(errors.iter().map(ToString::to_string)),
            }
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let facts = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "there is no such file; write its name with its ending, as in \"./parts.tsx\""
                .to_owned()
        }
        _ => error.to_string(),
    })?;
    if facts.len() > MAX_FILE {
        return Err(format!("the file has more than {MAX_FILE} bytes: split it"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}

/// The rules that concern several modules, or the server in place of the language.
fn check(app: &AppFolder, modules: &HashMap<String, SourceModule>) -> Vec<String> {
    let mut errors = Vec::new();
    // An application has at least one page, and a start script has no page.
    let is_start = app.files.is_empty();
    // An editor may empty a file before it writes the new text, and the rules of a script that is
    // empty for a moment must not be dropped.
    if is_start && modules.get(START).is_some_and(|own| own.source.trim().is_empty()) {
        errors.push(format!(
            "{START}:1:1: the file is empty: declare a rule, a filter or a scheduler, or remove the file and restart the server"
        ));
    }
    // An editor may empty a file before it writes the new text. Without this error, an open page of
    // the file would become a 404 for good.
    let is_empty = |page: &&PageFile| {
        modules.get(&page.file).is_some_and(|own| own.module.facts.exports.is_empty())
    };
    for PageFile { file, .. } in app.files.iter().filter(is_empty) {
        errors.push(format!(
            "{file}:1:1: the file exports nothing, but its name is that of a page: write `export default page(() => <h1>Hello</h1>)`, or begin the name with `_`"
        ));
    }
    let mut files: Vec<_> = modules.iter().collect();
    files.sort_unstable_by_key(|(file, _)| file.as_str());
    let mut services: HashMap<&str, String> = HashMap::new();
    for (file, own) in files {
        let module = &own.module;
        let place =
            |position: bine_tsx::Position| format!("{file}:{}:{}", position.line, position.column);
        for import in &module.facts.imports {
            let reason = match import.kind {
                ImportKind::Bine | ImportKind::Services if is_start => {
                    "start.ts and its modules import the words of \"bine:start\": pages, services and tables belong to applications"
                }
                ImportKind::Start if !is_start => {
                    "only start.ts, in the folder of the site, and its modules import \"bine:start\""
                }
                _ => continue,
            };
            errors.push(format!(
                "{}: {reason}{}",
                place(import.position),
                own.shown_line(file, import.position)
            ));
        }
        for variable in &module.facts.changed_variables {
            errors.push(format!(
                "{}: `{}` is changed at line {}, but each event loop of the server has variables of its own: keep the value in a `table`, or in the session of the visitor",
                place(variable.declared),
                variable.name,
                variable.changed.line,
            ));
        }
        for service in &module.facts.services {
            let own = place(service.position);
            if let Some(other) = services.insert(&service.name, own.clone()) {
                errors.push(format!(
                    "{own}: the application has another service `{}` at {other}: a service has its name in its URL, so rename one of them",
                    service.name
                ));
            }
        }
    }
    errors
}

/// The module that imports all pages, layouts and modules with services.
fn entry(app: &AppFolder, modules: &HashMap<String, SourceModule>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let has_services = |file: &&String| !modules[*file].module.facts.services.is_empty();
    let mut imported: Vec<&str> = modules.keys().filter(has_services).map(String::as_str).collect();
    let with_services = imported.len();
    imported.sort_unstable();
    let mut number = |file| match imported.iter().position(|known| *known == file) {
        Some(known) => known,
        None => {
            imported.push(file);
            imported.len() - 1
        }
    };
    let mut pages = String::new();
    // A `String` takes any text.
    for page in &app.files {
        let layout = page.layout.as_deref().map(&mut number);
        let layout = layout.map_or_else(|| "null".to_owned(), |index| format!("m{index}"));
        let _ = write!(pages, "[{},m{},{layout}],", quoted(&page.file), number(&page.file));
    }
    let error = modules.contains_key(ERROR_PAGE).then(|| number(ERROR_PAGE));
    let error = error.map_or_else(|| "null".to_owned(), |index| format!("m{index}"));
    let title = quoted(app.settings.title.as_deref().unwrap_or_default());
    let mut text = "import { $application } from \"bine:application\";".to_owned();
    for (index, file) in imported.iter().enumerate() {
        let _ = write!(text, "import * as m{index} from {};", quoted(&format!("./{file}")));
    }
    let _ = write!(text, "export default $application([{pages}],[");
    for index in 0..with_services {
        let _ = write!(text, "m{index},");
    }
    let _ = write!(text, "],{error},{title});");
    text
}

fn version(app: &AppFolder, modules: &HashMap<String, SourceModule>) -> u64 {
    let mut sources: Vec<_> = modules.iter().map(|(file, own)| (file, &own.source)).collect();
    sources.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (&app.settings.title, sources).hash(&mut hasher);
    hasher.finish()
}

/// The module `bine:browser` on the server, which has no page: it may load a file of the browser, but
/// not call these.
const BROWSER_ON_SERVER: &str = r#"
const no = (name) => () => { throw new Error(`only browsers have "${name}", and this code runs on the server`); };
export const call = no("call"), follow = no("follow"), navigate = no("navigate"), on = no("on");
"#;

/// Supplies the modules of a generation to an instance.
pub(super) struct GenerationLoader {
    generation: Arc<Generation>,
    /// The module `bine:services`.
    rust_services: String,
}

impl GenerationLoader {
    pub(super) fn new(generation: &Arc<Generation>, rust_services: String) -> Self {
        Self { generation: Arc::clone(generation), rust_services }
    }
}

impl ModuleLoader for GenerationLoader {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        if path == ENTRY {
            return Ok(self.generation.entry.clone());
        }
        let module = self.generation.modules.get(path).ok_or(LoadError::NotFound)?;
        Ok(module.module.code.clone())
    }

    fn load_built_in(&self, name: &str) -> Option<String> {
        match name {
            "bine:services" => Some(self.rust_services.clone()),
            "bine:browser" => Some(BROWSER_ON_SERVER.to_owned()),
            name => words::module(name).map(str::to_owned),
        }
    }
}
