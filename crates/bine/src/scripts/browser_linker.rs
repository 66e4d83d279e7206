//! The linker of the browser's part of an application: handlers and files `.browser.ts` become modules
//! with their imports resolved.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use bine_tsx::{
    BrowserHost, BrowserImport, BrowserLinker, BrowserSource, Facts, Import, ImportKind, Module,
    NamedExport, Position, is_browser_file,
};
use serde_json::Value as Json;

use super::browser_files::{BrowserFile, ENDING, FOLDER};
use super::source_module::{SourceModule, resolved};
use crate::browser_services;
use crate::bundled_asset::script_path;
use crate::service::in_process::ServiceDirectory;

/// Writes the modules of the browser, and their URLs into the modules of the server. `url`: that of the
/// application; `segment`: the first part of the names of its events and channels. Returns the modules, or the errors, each with its place.
pub(super) fn link(
    url: &str,
    segment: &str,
    modules: &mut HashMap<String, SourceModule>,
    services: Option<&ServiceDirectory>,
) -> Result<Vec<BrowserFile>, Vec<String>> {
    let mut linker = Linker {
        url,
        segment,
        modules,
        services,
        files: BrowserLinker::default(),
        all: Vec::new(),
        errors: Vec::new(),
    };
    let mut names: Vec<String> = modules.keys().cloned().collect();
    names.sort_unstable();
    let mut urls = Vec::new();
    for name in &names {
        if is_browser_file(name) {
            linker.file(name, None);
        }
        if let Some(hash) = linker.handlers(name) {
            urls.push((name, format!("{url}{FOLDER}{hash}{ENDING}")));
        }
    }
    let Linker { all, errors, .. } = linker;
    if !errors.is_empty() {
        return Err(errors);
    }
    for (name, url) in urls {
        if let Some(own) = modules.get_mut(name) {
            own.module.set_browser_url(&url);
        }
    }
    Ok(all)
}

struct Linker<'l> {
    url: &'l str,
    segment: &'l str,
    modules: &'l HashMap<String, SourceModule>,
    services: Option<&'l ServiceDirectory>,
    /// The files `.browser.ts`.
    files: BrowserLinker,
    all: Vec<BrowserFile>,
    errors: Vec<String>,
}

impl Linker<'_> {
    fn refuse(&mut self, file: &str, position: Position, reason: &str) {
        let shown = self.modules.get(file).map(|own| own.shown_line(file, position));
        let Position { line, column } = position;
        self.errors.push(format!("{file}:{line}:{column}: {reason}{}", shown.unwrap_or_default()));
    }

    fn keep(&mut self, code: String) -> String {
        let file = BrowserFile::new(code);
        let hash = file.hash.clone();
        if self.all.iter().all(|other| other.hash != hash) {
            self.all.push(file);
        }
        hash
    }

    /// Links a file `.browser.ts` and what it imports. Returns its name in the URL. `importer`: the place
    /// that imports it.
    fn file(&mut self, file: &str, importer: Option<(&str, Position)>) -> Option<String> {
        let mut linker = std::mem::take(&mut self.files);
        let name = linker.link(self, file, importer);
        self.files = linker;
        name
    }

    /// Links the handlers of a module. Returns the hash of their module.
    fn handlers(&mut self, file: &str) -> Option<String> {
        let browser = self.modules.get(file)?.module.browser.as_ref()?;
        let mut code = String::new();
        let mut script = ScriptImports::new(&browser.unused_name);
        for import in &browser.imports {
            let BrowserImport { local, name, position, .. } = import;
            // A `String` takes any text.
            let _ = match self.source(file, import) {
                Ok(ImportTarget::File(path)) => {
                    let own = self.file(&path, Some((file, *position)))?;
                    let names = match name.as_str() {
                        "*" => format!("*as {local} "),
                        name => format!("{{{name} as {local}}}"),
                    };
                    write!(code, "import{names}from\"./{own}\";")
                }
                Ok(ImportTarget::Service(path)) => {
                    let call = script.name("call");
                    write!(
                        code,
                        "const {local}=(values)=>{call}({path},values);",
                        path = Json::from(path)
                    )
                }
                Ok(ImportTarget::Event(event)) => {
                    let on = script.name("on");
                    write!(
                        code,
                        "const {local}={{on:(f)=>{on}({event},f)}};",
                        event = Json::from(event)
                    )
                }
                Ok(ImportTarget::Channel(channel)) => {
                    let follow = script.name("follow");
                    let is_pattern = channel.contains(['{', '*']);
                    let channel = Json::from(channel);
                    if is_pattern {
                        write!(
                            code,
                            "const {local}={{at:(...v)=>({{follow:(f,o)=>{follow}({channel},f,o,v)}})}};"
                        )
                    } else {
                        write!(code, "const {local}={{follow:(f,o)=>{follow}({channel},f,o)}};")
                    }
                }
                Ok(ImportTarget::Script) => {
                    let word = script.name(name);
                    write!(code, "const {local}={word};")
                }
                Err(reason) => {
                    self.refuse(file, *position, &reason);
                    Ok(())
                }
            };
        }
        Some(self.keep(format!("{}{code}\n{}", script.code(), browser.code)))
    }

    /// The name for clients of an event or a channel of the application.
    fn client_name(&self, name: &str) -> String {
        format!("{}/{name}", self.segment)
    }

    /// The origin of a name in handlers.
    fn source(&self, file: &str, import: &BrowserImport) -> Result<ImportTarget, String> {
        let service = |name: &str| ImportTarget::Service(format!("{}/{name}", self.url));
        match &import.source {
            BrowserSource::Own => Ok(service(&import.name)),
            BrowserSource::Rust => {
                let none = || format!("the program has no service `{}` in Rust", import.name);
                let own = self.services.ok_or_else(none)?.named(&import.name)?;
                Ok(ImportTarget::Service(own.path.to_owned()))
            }
            BrowserSource::Browser(specifier) => {
                let outside = || format!("\"{specifier}\" is outside of the application's folder");
                resolved(file, specifier).map(ImportTarget::File).ok_or_else(outside)
            }
            BrowserSource::Script => Ok(ImportTarget::Script),
            BrowserSource::Event => Ok(ImportTarget::Event(self.client_name(&import.name))),
            BrowserSource::Channel => Ok(ImportTarget::Channel(self.client_name(&import.name))),
            BrowserSource::Server(specifier) => {
                let path = resolved(file, specifier);
                let facts = path.and_then(|path| self.modules.get(&path));
                let facts = facts.map(|own| &own.module.facts);
                let is_service = facts.is_some_and(|facts| {
                    facts.services.iter().any(|service| service.name == import.name)
                });
                let named = |list: fn(&Facts) -> &Vec<NamedExport>| {
                    let found = list(facts?).iter().find(|one| one.export == import.name);
                    found.map(|one| self.client_name(&one.name))
                };
                let found = if is_service {
                    Some(service(&import.name))
                } else if let Some(event) = named(|facts| &facts.events) {
                    Some(ImportTarget::Event(event))
                } else {
                    named(|facts| &facts.channels).map(ImportTarget::Channel)
                };
                found.ok_or_else(|| {
                    format!(
                        "`{}` of \"{specifier}\" is no service, event or channel, and this function runs in the browser: move it to a file whose name ends with `.browser.ts`, which both sides can import",
                        import.local
                    )
                })
            }
        }
    }
}

/// Where a name in handlers leads.
enum ImportTarget {
    /// The path of a service.
    Service(String),
    /// A file `.browser.ts`.
    File(String),
    /// An event, by its name for clients.
    Event(String),
    /// A channel or a pattern of channels, by its name for clients.
    Channel(String),
    /// The script of pages.
    Script,
}

/// The names that a module imports from the script of pages.
struct ScriptImports<'s> {
    /// A name that the module does not contain.
    unused_name: &'s str,
    words: BTreeSet<String>,
}

impl<'s> ScriptImports<'s> {
    fn new(unused_name: &'s str) -> Self {
        Self { unused_name, words: BTreeSet::new() }
    }

    /// The name in the module of a word of the script.
    fn name(&mut self, word: &str) -> String {
        self.words.insert(word.to_owned());
        format!("{}{word}", self.unused_name)
    }

    /// The import.
    fn code(&self) -> String {
        if self.words.is_empty() {
            return String::new();
        }
        let words = self.words.iter().map(|word| format!("{word} as {}{word}", self.unused_name));
        let words = words.collect::<Vec<_>>().join(",");
        format!("import{{{words}}}from{};", Json::from(script_path()))
    }
}

impl BrowserHost for Linker<'_> {
    fn module(&mut self, file: &str, _importer: Option<(&str, Position)>) -> Option<&Module> {
        Some(&self.modules.get(file)?.module)
    }

    fn resolve(&self, file: &str, specifier: &str) -> Option<String> {
        resolved(file, specifier)
    }

    fn built_in(&mut self, _file: &str, import: &Import) -> Result<String, String> {
        if import.kind == ImportKind::Browser {
            return Ok(script_path().to_owned());
        }
        let services = import.names.iter().map(|name| {
            let none = || format!("the program has no service `{name}` in Rust");
            let own = self.services.ok_or_else(none)?.named(name)?;
            Ok((name.as_str(), Some(own.path)))
        });
        let services = services.collect::<Result<Vec<_>, String>>()?;
        let hash = self.keep(browser_services::module(script_path(), services));
        Ok(format!("./{hash}{ENDING}"))
    }

    fn keep(&mut self, _file: &str, code: String) -> String {
        self.keep(code) + ENDING
    }

    fn refuse(&mut self, file: &str, position: Position, reason: &str) {
        self.refuse(file, position, reason);
    }
}
