//! Modules: names of imports, the sources that a loader supplies, and built-in modules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::{Array, Ctx, Error, Exception, Module, Result};

use crate::error::{Frame, Position, ScriptError, excerpt};
use crate::exception;
use crate::host_function::throw_type;
use crate::quickjs::{Callback, Thrown};
use crate::state::State;
use crate::template::{FillTemplate, NewTemplate, TrustedMarkup};
use crate::value::Value;

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
    loader: Box<dyn ModuleLoader>,
    /// The first importer of each module; `None` for the one that the host has loaded.
    importers: RefCell<HashMap<String, Option<String>>>,
    /// The last module that could not be loaded.
    failure: RefCell<Option<ScriptError>>,
}

/// Resolves and loads the modules of an instance for the engine.
pub(crate) struct EngineLoader(pub(crate) Rc<State>);

/// Modules that only built-in modules may import.
const INTERNAL: &str = "bine:internal/";
/// The module with the functions of compiled markup: `$markup`, `$html` and `raw`.
const MARKUP: &str = "bine:internal/markup";

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

    fn fail(&self, name: &str, error: ScriptError) {
        self.failure.replace(Some(ScriptError { imports: self.chain(name), ..error }));
    }
}

/// Whether a name denotes a built-in module.
fn is_built_in(name: &str) -> bool {
    name == "bine" || name.starts_with("bine:")
}

/// The path or name of the module that `base` imports as `specifier`.
fn resolve(base: &str, specifier: &str) -> std::result::Result<String, String> {
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

impl Resolver for EngineLoader {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let modules = &self.0.modules;
        match resolve(base, name) {
            Ok(path) => {
                let mut importers = modules.importers.borrow_mut();
                importers
                    .entry(path.clone())
                    .or_insert_with(|| (!base.is_empty()).then(|| base.to_owned()));
                Ok(path)
            }
            Err(reason) => {
                let message = format!("{reason}, but {base} does so");
                let message = if reason.contains("cannot be imported") { reason } else { message };
                modules.fail(base, ScriptError::new("ImportError", message.clone()));
                Err(throw(ctx, &message))
            }
        }
    }
}

impl Loader for EngineLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js>> {
        declare(&self.0, ctx, name)
    }
}

/// Compiles a module.
pub(crate) fn declare<'js>(state: &State, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js>> {
    let modules = &state.modules;
    let fail = |error: ScriptError| {
        let message = error.message.clone();
        modules.fail(name, error);
        throw(ctx, &message)
    };
    let refuse = |message: String| fail(ScriptError::new("ImportError", message));
    if modules.importers.borrow().len() > state.limits.modules {
        return Err(refuse(format!("more than {} modules", state.limits.modules)));
    }
    let source = if name == MARKUP {
        return declare_native(state, ctx, name, &markup_exports(state));
    } else if let Some(module) = state.host_module(name) {
        return declare_native(state, ctx, name, &module.exports(state));
    } else if is_built_in(name) {
        match modules.loader.load_built_in(name) {
            Some(source) => source,
            None => return Err(refuse(format!("there is no built-in module \"{name}\""))),
        }
    } else {
        match modules.loader.load(name) {
            Ok(source) => source,
            Err(LoadError::NotFound) => return Err(refuse(format!("there is no file {name}"))),
            Err(LoadError::Invalid { message, position, excerpt }) => {
                let frames = position
                    .map(|position| Frame { function: String::new(), position: Some(position) });
                let error = ScriptError::new("SyntaxError", message);
                let frames = frames.into_iter().collect();
                return Err(fail(ScriptError { frames, excerpt, ..error }));
            }
        }
    };
    if source.len() > state.limits.module_bytes {
        let limit = state.limits.module_bytes;
        return Err(refuse(format!("{name} is larger than {limit} bytes")));
    }
    Module::declare(ctx.clone(), name, source.as_str()).map_err(|error| {
        if !matches!(error, Error::Exception) {
            return refuse(format!("{name} cannot be compiled: {error}"));
        }
        let thrown = ctx.catch();
        let error = exception::of_value(&thrown);
        // An error in a module that this one imports was recorded when that one was loaded.
        if error.name == "SyntaxError" && modules.failure.borrow().is_none() {
            let position = error.position().filter(|position| position.file == name);
            let excerpt = position.and_then(|position| excerpt(&source, position));
            modules.fail(name, ScriptError { excerpt, ..error });
        }
        ctx.throw(thrown)
    })
}

/// An export of a module that is not written in JavaScript.
pub(crate) enum NativeExport {
    Function(Rc<dyn Callback>),
    Value(Value),
}

/// The functions from which a compiler builds markup.
fn markup_exports(state: &State) -> Vec<(String, NativeExport)> {
    let export = |name: &str, callback: Rc<dyn Callback>| {
        (name.to_owned(), NativeExport::Function(callback))
    };
    vec![
        export("$markup", Rc::new(NewTemplate { state: state.itself() })),
        export("$html", Rc::new(FillTemplate { state: state.itself() })),
        export("raw", Rc::new(TrustedMarkup { state: state.itself() })),
    ]
}

fn declare_native<'js>(
    state: &State,
    ctx: &Ctx<'js>,
    name: &str,
    exports: &[(String, NativeExport)],
) -> Result<Module<'js>> {
    let list = Array::new(ctx.clone())?;
    let mut source = "const h = import.meta.host;".to_owned();
    for (index, (export, value)) in exports.iter().enumerate() {
        // A `String` takes any text.
        let _ = write!(source, "const v{index} = h[{index}]; export {{ v{index} as {export} }};");
        let value = match value {
            NativeExport::Function(callback) => state.callbacks.function(ctx, Rc::clone(callback)),
            NativeExport::Value(value) => {
                let written = state.converter().write(ctx, value);
                written.map_err(|unfit| throw_type(ctx, &unfit.message("the constant")))
            }
        };
        list.set(index, value.map_err(|Thrown| Error::Exception)?)?;
    }
    let declared = Module::declare(ctx.clone(), name, source)?;
    declared.meta()?.set("host", list)?;
    Ok(declared)
}

fn throw(ctx: &Ctx<'_>, message: &str) -> Error {
    match Exception::from_message(ctx.clone(), message) {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
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
