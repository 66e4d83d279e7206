//! Loads modules for the engine: from the loader of the host, and built-in ones.

use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::{Array, Ctx, Error, Exception, Module, Result};

use crate::error::{Frame, ScriptError, excerpt};
use crate::exception;
use crate::host_error::throw_type;
use crate::host_function::{HostModule, NativeExport};
use crate::markup_functions::{CapturedValues, FillTemplate, NewTemplate, TrustedMarkup};
use crate::modules::{LoadError, is_built_in, resolve};
use crate::quickjs::{Callback, Thrown};
use crate::row_functions::{FillRows, NewRowTemplate};
use crate::state::State;
use crate::tree_functions;

/// Resolves and loads the modules of an instance for the engine.
pub(crate) struct EngineLoader {
    pub(crate) state: Rc<State>,
    pub(crate) host_modules: Rc<[HostModule]>,
}

/// The module with the functions of compiled markup: `$markup`, `$html` and `raw`.
const MARKUP: &str = "bine:internal/markup";

impl Resolver for EngineLoader {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let modules = &self.state.modules;
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
        declare(&self.state, &self.host_modules, ctx, name)
    }
}

/// Compiles a module.
fn declare<'js>(
    state: &State,
    host_modules: &[HostModule],
    ctx: &Ctx<'js>,
    name: &str,
) -> Result<Module<'js>> {
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
    } else if name == tree_functions::NATIVE {
        return declare_native(state, ctx, name, &tree_functions::exports(state));
    } else if name == tree_functions::WORDS {
        tree_functions::WORDS_SOURCE.to_owned()
    } else if let Some(module) = host_modules.iter().find(|module| module.name() == name) {
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

/// The functions from which a compiler builds markup.
fn markup_exports(state: &State) -> Vec<(String, NativeExport)> {
    let export = |name: &str, callback: Rc<dyn Callback>| {
        (name.to_owned(), NativeExport::Function(callback))
    };
    vec![
        export("$markup", Rc::new(NewTemplate { state: state.itself() })),
        export("$html", Rc::new(FillTemplate { state: state.itself() })),
        export("$row", Rc::new(NewRowTemplate { state: state.itself() })),
        export("$fillRows", Rc::new(FillRows { state: state.itself() })),
        export("$captured", Rc::new(CapturedValues { state: state.itself() })),
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
