//! The compiler: one module of TSX to one module of JavaScript.

use std::thread;

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::{SourceType, Span};

use crate::browser::{BrowserFunction, BrowserModule, Handlers, functions, is_browser_file};
use crate::diagnostic::{Diagnostic, Fault, MAX_DIAGNOSTICS};
use crate::edits::{ColumnMap, Edits};
use crate::erase::erase;
use crate::facts::{Facts, ImportKind, collect};
use crate::markup::{Known, Markup, Names, generate};
use crate::scan::Imports;
use crate::source::{Position, Source};

/// The maximum size of a module in bytes.
pub const MAX_SOURCE: usize = 1 << 20;

/// The maximum nesting of brackets in a module.
pub const MAX_NESTING: usize = 256;

/// The stack of the compiler for each byte of the source, and for none. The parser and the visitors
/// recurse for chains of operators too, but each level of recursion has consumed a byte: a mebibyte
/// of `!` needs less. Only pages that are used become memory.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 8 << 10 } else { 2 << 10 };
const STACK: usize = 4 << 20;

/// A compiled module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The code, with every line where it is in the source.
    pub code: String,
    /// The facts that the host needs before it runs the code.
    pub facts: Facts,
    /// The code for the browser, if the module has handlers. Then the host must
    /// [set its URL](Self::set_browser_url).
    pub browser: Option<BrowserModule>,
    /// The functions that a file of the browser exports.
    pub functions: Vec<BrowserFunction>,
    columns: ColumnMap,
    has_markup: bool,
    /// The placeholder in the code for the URL of the browser's module.
    browser_url: String,
}

impl Module {
    /// The position in the source of a position in the code, such as one of a stack trace. QuickJS-ng
    /// counts columns of code in bytes of UTF-8; columns of the source count characters.
    pub fn source_position(&self, position: Position) -> Position {
        self.columns.source_position(position)
    }

    /// Whether the module has markup.
    pub fn has_markup(&self) -> bool {
        self.has_markup
    }

    /// Writes the URL of the browser's module into the code: a path of this server, without spaces,
    /// quotes, semicolons and characters that markup escapes.
    pub fn set_browser_url(&mut self, url: &str) {
        let uses = self.code.matches(&self.browser_url).count();
        let (old, new) = (uses * self.browser_url.len(), uses * url.len());
        // All are in the constants at the start of the first line.
        self.columns.move_first_line(old as u32, new as u32);
        self.code = self.code.replace(&self.browser_url, url);
        url.clone_into(&mut self.browser_url);
    }
}

/// Compiles a module. `file` is its name: it selects the language by its end (`.tsx`, `.ts`, `.jsx`,
/// `.js`), and errors begin with it.
///
/// # Errors
///
/// All errors of the module in the order of the source, at most 50.
pub fn compile(file: &str, source: &str) -> Result<Module, Vec<Diagnostic>> {
    let lines = Source::new(source);
    let whole =
        |message: String| vec![Diagnostic::new(file, &lines, &Fault { start: 0, end: 0, message })];
    if source.len() > MAX_SOURCE {
        return Err(whole(format!("the module has more than {MAX_SOURCE} bytes: split it")));
    }
    if let Some(at) = too_deep(source) {
        let message = format!("brackets are nested more than {MAX_NESTING} deep");
        return Err(vec![Diagnostic::new(file, &lines, &Fault { start: at, end: at, message })]);
    }
    // The parser and the visitors recurse as deep as the source nests.
    let compiled = thread::scope(|scope| {
        let builder = thread::Builder::new()
            .name("tsx".into())
            .stack_size(STACK + source.len() * STACK_PER_BYTE);
        builder
            .spawn_scoped(scope, || compile_here(file, source))
            .map(thread::ScopedJoinHandle::join)
    });
    match compiled {
        Ok(Ok(Ok(module))) => Ok(module),
        Ok(Ok(Err(mut faults))) => {
            faults.sort_by_key(|fault| (fault.start, fault.end));
            faults.dedup();
            faults.truncate(MAX_DIAGNOSTICS);
            Err(faults.iter().map(|fault| Diagnostic::new(file, &lines, fault)).collect())
        }
        Ok(Err(_)) => {
            Err(whole("the compiler failed on this module, which is a defect of it".into()))
        }
        Err(error) => Err(whole(format!("the compiler cannot start its thread: {error}"))),
    }
}

/// The offset of the first bracket that is nested too deep. Brackets in text count too.
fn too_deep(source: &str) -> Option<u32> {
    let mut depth = 0_usize;
    source.bytes().zip(0..).find_map(|(byte, at)| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth > MAX_NESTING).then_some(at)
    })
}

fn compile_here(file: &str, source: &str) -> Result<Module, Vec<Fault>> {
    let lines = Source::new(source);
    let allocator = Allocator::default();
    let source_type = source_type(file);
    // Old spellings such as `let x = <T>y` are reported by name below.
    let options = ParseOptions { preserve_parens: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, source_type).with_options(options).parse();
    let mut faults: Vec<Fault> = parsed.diagnostics.errors().map(fault_of).collect();
    if parsed.panicked || !faults.is_empty() {
        if faults.is_empty() {
            faults.push(Fault::new(Span::new(0, 0), "this is not a module of TypeScript"));
        }
        return Err(faults);
    }
    let program = &parsed.program;
    let semantic = SemanticBuilder::new().with_check_syntax_error(true).build(program);
    faults.extend(semantic.diagnostics.errors().map(fault_of));
    let scoping = semantic.semantic.into_scoping();

    let imports = Imports::of(program);
    let mut edits = Edits::default();
    erase(source, program, &mut edits, &mut faults);
    let known = Known { imports: &imports, scoping: &scoping };
    let names = Names::unused_in(source);
    let browser_url = names.browser_url();
    let mut handlers = Handlers::new(&lines, program, &imports, &scoping, names.captured());
    let markup = generate(&lines, program, known, names, &mut handlers, &mut edits, &mut faults);
    if !is_browser_file(file) {
        handlers.check_server_code(program, &mut faults);
    }
    let functions = if is_browser_file(file) {
        functions(&lines, program, &imports, &scoping)
    } else {
        Vec::new()
    };
    let unused = handlers.unused_imports(program);
    let browser = handlers.finish();
    let mut facts = collect(&lines, program, &imports, &scoping, &mut faults);
    if !is_browser_file(file) {
        let of_browser = facts.imports.iter().filter(|import| import.kind == ImportKind::Browser);
        faults.extend(of_browser.map(|import| {
            let at = lines.offset(import.position);
            let message = "only a file whose name ends with `.browser.ts` imports \"bine:browser\"";
            Fault { start: at, end: at, message: message.to_owned() }
        }));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let Markup { prelude, is_empty, regions } = markup;
    facts.regions = regions;
    for span in unused {
        let (start, end) = (lines.place(span.start), lines.place(span.end));
        facts.imports.retain(|import| !(start..end).contains(&import.position));
        edits.remove_in((span.start, span.end));
        edits.blank(source, (span.start, span.end), ";");
    }
    begin(source, &prelude, &mut edits);
    match edits.apply(source) {
        Ok((code, columns)) => Ok(Module {
            code,
            facts,
            browser,
            functions,
            columns,
            has_markup: !is_empty,
            browser_url,
        }),
        Err(overlap) => {
            let message = "the compiler edits this place twice, which is a defect of it";
            Err(vec![Fault::new(Span::new(overlap.at, overlap.at), message)])
        }
    }
}

/// Writes the generated declarations at the start of the first line.
fn begin(source: &str, prelude: &str, edits: &mut Edits) {
    let (end, comment) = match source {
        _ if source.starts_with('\u{feff}') => ('\u{feff}'.len_utf8(), ""),
        // The first line of a program that a shell starts.
        _ if source.starts_with("#!") => ("#!".len(), "//"),
        _ => (0, ""),
    };
    if end > 0 || !prelude.is_empty() {
        edits.replace(source, (0, end as u32), &format!("{prelude}{comment}"));
    }
}

fn source_type(file: &str) -> SourceType {
    let end = |end: &str| {
        file.len() >= end.len()
            && file.is_char_boundary(file.len() - end.len())
            && file[file.len() - end.len()..].eq_ignore_ascii_case(end)
    };
    if end(".ts") || end(".mts") {
        SourceType::ts()
    } else if end(".js") || end(".mjs") {
        SourceType::mjs()
    } else if end(".jsx") {
        SourceType::jsx()
    } else {
        SourceType::tsx()
    }
    .with_module(true)
}

fn fault_of(error: &oxc_diagnostics::OxcDiagnostic) -> Fault {
    let label = error.labels.first();
    let start = label.map_or(0, oxc_span::LabeledSpan::offset);
    let end = label.map_or(0, |label| label.offset() + label.len());
    let mut message = error.message.to_string();
    if let Some(help) = &error.help {
        message = format!("{message}: {help}");
    }
    Fault { start, end, message }
}
