//! Functions that run in the browser: those at `on..` of an element, and in `browser(..)`. They leave the
//! code of the server and become a module for the browser, with what they use of this module.
//!
//! | a name in such a function | becomes |
//! |---|---|
//! | its own parameter or variable | itself |
//! | a global of browsers | itself; any other global is an error |
//! | a service | a function that calls it and returns a promise, which must be used as one |
//! | an event or a channel | an object that listens to it |
//! | `navigate` of `bine` | the function of the script of pages |
//! | an import of a file `.browser.ts` | the same import |
//! | a function or constant of the module that uses only such names | a copy |
//! | a variable of the function around it that never changes | its value when the page is rendered |
//! | anything else | an error |

mod declarations;
mod functions;
mod globals;
mod references;
mod server_code;

use std::collections::{BTreeMap, HashMap, HashSet};

use oxc_ast::ast::{
    CallExpression, Expression, IdentifierReference, Program, Statement, VariableDeclarator,
};
use oxc_semantic::Scoping;
use oxc_span::{GetSpan, Span};
use oxc_syntax::reference::ReferenceId;
use oxc_syntax::symbol::SymbolId;

use crate::diagnostic::Fault;
use crate::edits::Edits;
use crate::scan::{BINE, Imports, SERVICES};
use crate::source::{Position, Source};

use declarations::{ModuleItem, declarations};
pub use functions::BrowserFunction;
pub(crate) use functions::functions;
use references::{References, Use};

/// The ends of the names of files that belong to the browser.
const BROWSER_FILES: [&str; 2] = [".browser.ts", ".browser.js"];

/// The code of a module that runs in the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserModule {
    /// The names from elsewhere that the code uses. The host writes the imports.
    pub imports: Vec<BrowserImport>,
    /// The code after the imports. The default export is an array of functions: each takes the array
    /// of captured values of an element and returns the handler.
    pub code: String,
    /// A name that the code does not contain.
    pub unused_name: String,
}

/// A name from elsewhere in the browser's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserImport {
    /// The name in the code.
    pub local: String,
    /// The exported name, or `*` for all exports; for a service, an event or a channel, its name.
    pub name: String,
    /// Where it is exported.
    pub source: BrowserSource,
    /// The place of the first use in a handler.
    pub position: Position,
}

/// Where a name in the browser's code is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowserSource {
    /// A service of this module.
    Own,
    /// A module of the server, by its specifier: only its services can be called.
    Server(String),
    /// The services in Rust.
    Rust,
    /// A module of the browser, by its specifier.
    Browser(String),
    /// An event of this module, by its name in the application.
    Event,
    /// A channel, or a pattern of channels, of this module, by its name in the application.
    Channel,
    /// The script of pages.
    Script,
}

/// The globals that a handler may use and code of the server may not, because it lacks these names.
pub fn browser_globals() -> impl Iterator<Item = &'static str> {
    globals::of_browsers_only()
}

/// Whether the name of a file is that of a module of the browser.
pub fn is_browser_file(file: &str) -> bool {
    BROWSER_FILES.iter().any(|end| file.ends_with(end))
}

/// A value that an element passes to its handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    symbol: SymbolId,
    path: Vec<String>,
    /// The expression of its value.
    pub(crate) code: String,
    /// The expression as written.
    pub(crate) name: String,
    pub(crate) position: Position,
}

/// A handler that was extracted.
pub(crate) struct Handler {
    /// Its place in the default export.
    pub(crate) index: usize,
    /// Whether it decides about the event while the event is dispatched.
    pub(crate) acts_at_once: bool,
}

/// The content of `on..` of an element.
pub(crate) enum Extracted {
    /// A function, which left the module.
    Handler(Handler),
    /// An expression whose value is known when the page is rendered.
    Value,
    /// Code that cannot run in the browser; the reasons are reported.
    Refused,
}

/// Extracts handlers. The markup of a module calls it for each one.
pub(crate) trait Extract {
    /// Takes the function of a handler out of the module. `captured` has the values that handlers of the
    /// same element capture.
    fn extract(
        &mut self,
        function: &Expression<'_>,
        captured: &mut Vec<Captured>,
        edits: &mut Edits,
        faults: &mut Vec<Fault>,
    ) -> Extracted;
}

/// Whether a name decides about the event while the event is dispatched, or why the browser cannot have
/// it.
type Examined = Result<bool, String>;

/// The handlers of a module.
pub(crate) struct Handlers<'p, 'a> {
    source: &'p Source<'p>,
    scoping: &'p Scoping,
    declared: HashMap<SymbolId, ModuleItem<'p, 'a>>,
    /// The name of the parameter with the captured values, which the source does not contain.
    parameter: String,
    /// The declarations of the module that were examined.
    examined: HashMap<SymbolId, Examined>,
    /// The copied declarations, by their place in the source.
    copies: BTreeMap<u32, String>,
    copied: Vec<Span>,
    imports: Vec<BrowserImport>,
    functions: Vec<String>,
    /// The references in handlers, which leave the code of the server.
    moved: HashSet<ReferenceId>,
}

impl<'p, 'a> Handlers<'p, 'a> {
    pub(crate) fn new(
        source: &'p Source<'p>,
        program: &'p Program<'a>,
        imports: &Imports,
        scoping: &'p Scoping,
        parameter: String,
    ) -> Self {
        Self {
            source,
            scoping,
            declared: declarations(program, imports),
            parameter,
            examined: HashMap::new(),
            copies: BTreeMap::new(),
            copied: Vec::new(),
            imports: Vec::new(),
            functions: Vec::new(),
            moved: HashSet::new(),
        }
    }

    /// Reports the globals of browsers in code of the server.
    pub(crate) fn check_server_code(&self, program: &Program<'_>, faults: &mut Vec<Fault>) {
        let is_moved = |name: &IdentifierReference<'_>| {
            name.reference_id.get().is_some_and(|reference| self.moved.contains(&reference))
                || self.copied.iter().any(|span| span.contains_inclusive(name.span))
        };
        server_code::check(program, self.scoping, is_moved, faults);
    }

    /// The imports of modules of the browser that only handlers use: the server must not run them.
    pub(crate) fn unused_imports(&self, program: &Program<'_>) -> Vec<Span> {
        let is_moved = |symbol: SymbolId| {
            let mut references = self.scoping.get_resolved_reference_ids(symbol).iter();
            references.all(|reference| self.moved.contains(reference))
        };
        let imports = program.body.iter().filter_map(|statement| match statement {
            Statement::ImportDeclaration(import) if is_browser_file(&import.source.value) => {
                let specifiers = import.specifiers.as_ref()?;
                let mut symbols = specifiers.iter().map(|one| one.local().symbol_id.get());
                let is_unused = symbols.all(|symbol| symbol.is_some_and(is_moved));
                (!specifiers.is_empty() && is_unused).then_some(import.span)
            }
            _ => None,
        });
        imports.collect()
    }

    /// The module of the browser; `None` without handlers.
    pub(crate) fn finish(self) -> Option<BrowserModule> {
        if self.functions.is_empty() {
            return None;
        }
        let copies: String = self.copies.into_values().collect();
        let code = format!("{copies}export default[\n{}\n];\n", self.functions.join(",\n"));
        let unused_name = format!("{}_", self.parameter);
        Some(BrowserModule { imports: self.imports, code, unused_name })
    }

    /// Checks a name that a handler, or a copied declaration, uses. Returns why it cannot.
    fn check(&mut self, one: &Use, edits: &Edits) -> Examined {
        let name = one.name.as_str();
        let Some(symbol) = one.symbol else {
            if globals::is_global(name) {
                return Ok(false);
            }
            let similar = globals::nearest(name);
            let similar = similar.map(|one| format!("; did you mean `{one}`?"));
            let similar = similar.unwrap_or_default();
            return Err(format!("browsers have no global `{name}`{similar}"));
        };
        if one.is_changed {
            return Err(format!("`{name}` is declared outside, and the browser has only a copy"));
        }
        self.check_use(one, symbol)?;
        if let Some(known) = self.examined.get(&symbol) {
            return known.clone();
        }
        // A function that calls itself finds this entry.
        self.examined.insert(symbol, Ok(false));
        let found = self.examine(name, symbol, one.span, edits);
        self.examined.insert(symbol, found.clone());
        found
    }

    /// Checks how a name is used.
    fn check_use(&self, one: &Use, symbol: SymbolId) -> Result<(), String> {
        let name = &one.name;
        let (what, methods): (&str, &[&str]) = match self.declared.get(&symbol) {
            Some(ModuleItem::Event(_)) => ("on", &["on"]),
            Some(ModuleItem::Channel(pattern)) if pattern.contains(['{', '*']) => ("at", &["at"]),
            Some(ModuleItem::Channel(_)) => ("follow", &["follow"]),
            Some(ModuleItem::Service(_)) if one.is_unawaited => return Err(unawaited(name)),
            Some(ModuleItem::Import { specifier, .. })
                if one.is_unawaited && *specifier != BINE && !is_browser_file(specifier) =>
            {
                return Err(unawaited(name));
            }
            _ => return Ok(()),
        };
        let method = one.method.as_deref().or(one.path.first().map(String::as_str));
        match method {
            Some(method) if methods.contains(&method) => Ok(()),
            Some(method) => Err(format!(
                "`{name}.{method}` runs on the server{CALL_A_SERVICE}; a handler has `{name}.{what}(..)`"
            )),
            None => Err(format!("a handler uses `{name}` as `{name}.{what}(..)`")),
        }
    }

    fn examine(&mut self, name: &str, symbol: SymbolId, at: Span, edits: &Edits) -> Examined {
        let imported = |specifier: &str| match specifier {
            SERVICES => BrowserSource::Rust,
            file if is_browser_file(file) => BrowserSource::Browser(file.to_owned()),
            file => BrowserSource::Server(file.to_owned()),
        };
        let (imported_name, source) = match self.declared.get(&symbol) {
            Some(ModuleItem::Import { specifier, name: word })
                if *specifier == BINE && SCRIPT_WORDS.contains(&word.as_str()) =>
            {
                (word.clone(), BrowserSource::Script)
            }
            Some(ModuleItem::Import { specifier, name: word })
                if *specifier == BINE && word == "sealed" =>
            {
                return Err(format!(
                    "`{name}` belongs to the server: call it outside of the handler, and use its result here"
                ));
            }
            Some(ModuleItem::Import { specifier, .. }) if *specifier == BINE => {
                return Err(format!("`{name}` of \"bine\" belongs to the server{CALL_A_SERVICE}"));
            }
            Some(ModuleItem::Import { specifier, name: imported_name }) => {
                let source = imported(specifier);
                if imported_name == "*" && !matches!(source, BrowserSource::Browser(_)) {
                    return Err(format!(
                        "`{name}` has all exports of a module of the server: import its services by their names"
                    ));
                }
                (imported_name.clone(), source)
            }
            Some(ModuleItem::Service(service)) => (service.clone(), BrowserSource::Own),
            Some(ModuleItem::Event(event)) => (event.clone(), BrowserSource::Event),
            Some(ModuleItem::Channel(channel)) => (channel.clone(), BrowserSource::Channel),
            Some(ModuleItem::Function(function)) => {
                let function = *function;
                let found = References::of_function(self.scoping, function);
                return self.copy(&found, function.span, "", edits);
            }
            Some(ModuleItem::Constant(constant)) => {
                let constant = *constant;
                let Some(value) = &constant.init else { return Ok(false) };
                let found = References::of_constant(self.scoping, value);
                return self.copy(&found, constant.span, "const ", edits);
            }
            Some(ModuleItem::Browser) => {
                return Err(format!(
                    "`{name}` is a handler of its own: pass it to an element, as `onclick={{{name}}}`"
                ));
            }
            Some(ModuleItem::Other(what)) => return Err(format!("`{name}` is {what}")),
            Some(ModuleItem::Server(what)) => {
                return Err(format!("`{name}` is {what} of the server{CALL_A_SERVICE}"));
            }
            None => return Err(format!("`{name}` is no function or constant of this module")),
        };
        let position = self.source.place(at.start);
        let local = name.to_owned();
        self.imports.push(BrowserImport { local, name: imported_name, source, position });
        Ok(false)
    }

    /// Copies a declaration of the module, and what it uses.
    fn copy(
        &mut self,
        found: &References<'_>,
        span: Span,
        keyword: &str,
        edits: &Edits,
    ) -> Examined {
        let place = |span: Span| self.source.place(span.start).line;
        if let Some(fault) = found.faults.first() {
            let line = place(Span::new(fault.start, fault.end));
            return Err(format!("line {line}: {}", fault.message));
        }
        let mut acts_at_once = found.acts_at_once;
        for one in &found.uses {
            let line = place(one.span);
            let outcome = self.check(one, edits);
            // The innermost place alone.
            acts_at_once |= outcome.map_err(|reason| {
                if reason.starts_with("line ") { reason } else { format!("line {line}: {reason}") }
            })?;
        }
        let text = edits.text_in(self.source.text, (span.start, span.end), &[]);
        self.copied.push(span);
        let end = if keyword.is_empty() { "" } else { ";" };
        self.copies.insert(span.start, format!("{keyword}{text}{end}\n"));
        Ok(acts_at_once)
    }

    fn add_function(&mut self, code: &str, acts_at_once: bool) -> Extracted {
        self.functions.push(format!("{}=>({code})", self.parameter));
        Extracted::Handler(Handler { index: self.functions.len() - 1, acts_at_once })
    }

    /// Extracts a handler that is not written in its place: a function of the module, or of a file of the
    /// browser, by its name.
    fn extract_named(
        &mut self,
        value: &Expression<'_>,
        edits: &Edits,
        faults: &mut Vec<Fault>,
    ) -> Extracted {
        let refuse = |faults: &mut Vec<Fault>| {
            faults.push(Fault::new(value.span(), NO_FUNCTION));
            Extracted::Refused
        };
        let name = match value {
            Expression::Identifier(name) => name,
            // These may have a handler of `browser(..)` as their value.
            Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::ChainExpression(_)
            | Expression::ConditionalExpression(_)
            | Expression::LogicalExpression(_)
            | Expression::NullLiteral(_) => return Extracted::Value,
            Expression::CallExpression(call) if self.is_browser_call(call) => {
                return Extracted::Value;
            }
            _ => return refuse(faults),
        };
        let one = Use::of_name(self.scoping, name);
        match one.symbol.map(|symbol| self.declared.get(&symbol)) {
            Some(Some(ModuleItem::Function(_))) => {}
            Some(Some(ModuleItem::Constant(constant))) if is_function(constant) => {}
            Some(Some(ModuleItem::Import { specifier, .. })) if is_browser_file(specifier) => {}
            Some(Some(ModuleItem::Import { specifier, .. })) if *specifier != BINE => {
                return Extracted::Value;
            }
            // A variable of a function has any value.
            Some(None | Some(ModuleItem::Browser)) => return Extracted::Value,
            None if name.name == "undefined" => return Extracted::Value,
            _ => return refuse(faults),
        }
        self.moved.extend(one.reference);
        match self.check(&one, edits) {
            Ok(acts_at_once) => self.add_function(&name.name, acts_at_once),
            Err(reason) => {
                faults.push(unavailable(&one, reason));
                Extracted::Refused
            }
        }
    }

    fn is_browser_call(&self, call: &CallExpression<'_>) -> bool {
        let Expression::Identifier(name) = &call.callee else { return false };
        let one = Use::of_name(self.scoping, name);
        let declared = one.symbol.and_then(|symbol| self.declared.get(&symbol));
        matches!(declared, Some(ModuleItem::Import { specifier, name }) if *specifier == BINE && name == "browser")
    }

    /// Whether a variable is declared in a function around the handler.
    fn is_local(&self, one: &Use) -> bool {
        one.symbol.is_some_and(|symbol| {
            self.scoping.symbol_scope_id(symbol) != self.scoping.root_scope_id()
        })
    }

    /// Why the value of a variable of the function around a handler cannot travel.
    fn unfit(&self, one: &Use, symbol: SymbolId) -> Option<String> {
        let name = &one.name;
        let flags = self.scoping.symbol_flags(symbol);
        if one.is_changed {
            return Some(format!(
                "`{name}` belongs to the server, and the browser has only a copy: it cannot be changed here; keep what changes in the document, or call a service"
            ));
        }
        if flags.is_function() || flags.is_class() {
            return Some(format!(
                "`{name}` is declared in a function of the server: declare it at the top of the module, so that the browser can have it too"
            ));
        }
        self.scoping.symbol_is_mutated(symbol).then(|| {
            format!(
                "`{name}` changes while the page is rendered: copy the value to pass into a `const`"
            )
        })
    }
}

impl Extract for Handlers<'_, '_> {
    fn extract(
        &mut self,
        function: &Expression<'_>,
        captured: &mut Vec<Captured>,
        edits: &mut Edits,
        faults: &mut Vec<Fault>,
    ) -> Extracted {
        let span = function.span();
        let Some(found) = References::of_handler(self.scoping, function) else {
            return self.extract_named(function, edits, faults);
        };
        let before = faults.len();
        let mut acts_at_once = found.acts_at_once;
        self.moved.extend(found.uses.iter().filter_map(|one| one.reference));
        faults.extend(found.faults);
        let (locals, others): (Vec<&Use>, Vec<&Use>) =
            found.uses.iter().partition(|one| self.is_local(one));
        for one in others {
            match self.check(one, edits) {
                Ok(decides) => acts_at_once |= decides,
                Err(reason) => faults.push(unavailable(one, reason)),
            }
        }
        let mut replacements = Vec::new();
        for one in &locals {
            let Some(symbol) = one.symbol else { continue };
            if let Some(message) = self.unfit(one, symbol) {
                faults.push(Fault::new(name_of(one), message));
                continue;
            }
            // The shortest path that another use needs has this value too.
            let same = locals.iter().filter(|other| other.symbol == one.symbol);
            let starts = same.filter(|other| one.path.starts_with(&other.path));
            let path = starts.map(|other| &other.path).min_by_key(|path| path.len());
            let path = path.unwrap_or(&one.path);
            let known = captured.iter().position(|old| old.symbol == symbol && old.path == *path);
            let index = known.unwrap_or_else(|| {
                let joined =
                    |dot: &str| path.iter().fold(one.name.clone(), |text, part| text + dot + part);
                captured.push(Captured {
                    symbol,
                    path: path.clone(),
                    code: joined("?."),
                    name: joined("."),
                    position: self.source.place(one.span.start),
                });
                captured.len() - 1
            });
            let key = if one.is_shorthand { format!("{}:", one.name) } else { String::new() };
            let rest = &one.path[path.len()..];
            let value = format!("{key}{}[{index}]", self.parameter);
            let value = rest.iter().fold(value, |text, part| text + "." + part);
            replacements.push(((one.span.start, one.span.end), value));
        }
        let text = edits.text_in(self.source.text, (span.start, span.end), &replacements);
        edits.remove_in((span.start, span.end));
        if faults.len() > before {
            return Extracted::Refused;
        }
        self.add_function(&text, acts_at_once)
    }
}

/// The words of `bine` that the script of pages has too.
const SCRIPT_WORDS: [&str; 1] = ["navigate"];

const CALL_A_SERVICE: &str = ", and this function runs in the browser: call a service that uses it";

const NO_FUNCTION: &str = "a handler is a function in this place, which runs in the browser: `onclick={() => save({ id })}`";

/// Whether the value of a constant is a function.
fn is_function(constant: &VariableDeclarator<'_>) -> bool {
    constant.init.as_ref().is_some_and(|value| value.get_inner_expression().is_function())
}

fn unawaited(name: &str) -> String {
    format!(
        "`{name}(..)` returns a promise here: write `await {name}(..)`, or return it, so that a refusal is shown; `void {name}(..)` ignores the result"
    )
}

/// The fault of a name that the browser cannot have.
fn unavailable(one: &Use, reason: String) -> Fault {
    let message = if reason.starts_with("line ") {
        format!("`{}` cannot run in the browser: {reason}", one.name)
    } else {
        reason
    };
    Fault::new(name_of(one), message)
}

/// The place of the name alone.
fn name_of(one: &Use) -> Span {
    Span::new(one.span.start, one.span.start + one.name.len() as u32)
}
