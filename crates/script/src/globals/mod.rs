//! The global names of scripts, beyond those of the language.
//!
//! What an engine needs rarely is JavaScript that is compiled at its first use.

mod encoding;
mod url;

use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Object, Value};

use crate::exception;
use crate::host::Level;
use crate::host_error::HostError;
use crate::markup_functions::MarkupText;
use crate::quickjs::{self, Arguments, Callback, MarkupClass, Thrown};
use crate::state::{Classes, State};
use crate::timer_functions::{ClearTimer, SetTimer};

/// The most bytes of one call of `crypto.getRandomValues`, as in browsers.
const MAX_RANDOM: usize = 65_536;
/// Bytes of one message of the console.
const MAX_MESSAGE: usize = 64 << 10;

/// JavaScript that defines global names. Each file is an expression: a function of the natives.
const STACK_GETTER: &str = "Object.getOwnPropertyDescriptor(Error.prototype, 'stack').get";
const START: &str = include_str!("start.js");
const PARTS: [(&str, &str); 4] = [
    ("abort", include_str!("abort.js")),
    ("clone", include_str!("clone.js")),
    ("encoding", include_str!("encoding.js")),
    ("url", include_str!("url.js")),
];

/// Defines the global names. Returns the function that reports when a promise is settled.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Function<'js>, Thrown> {
    let thrown = |_: rquickjs::Error| Thrown;
    let plain = Object::new(ctx.clone()).map_err(thrown)?;
    let prototype = Object::new(ctx.clone()).map_err(thrown)?;
    let markup = MarkupClass::register(ctx, &prototype)?;
    let classes = Classes { markup, plain: quickjs::class_id(plain.as_value()) };
    // The state is new, so the cell is empty.
    let _ = state.classes.set(classes);
    state.trees.register(ctx, markup)?;
    state.callbacks.attach(ctx);

    let native = Object::new(ctx.clone()).map_err(thrown)?;
    let define = |name: &str, callback: Rc<dyn Callback>| {
        let function = state.callbacks.function(ctx, callback)?;
        quickjs::define(native.as_value(), name, &function)
    };
    quickjs::define(native.as_value(), "markup", prototype.as_value())?;
    for (name, repeats) in [("setTimeout", false), ("setInterval", true)] {
        define(name, Rc::new(SetTimer { state: Rc::clone(state), repeats }))?;
    }
    define("clearTimer", Rc::new(ClearTimer { state: Rc::clone(state) }))?;
    define("markupText", Rc::new(MarkupText { state: Rc::clone(state) }))?;
    let natives: [(&str, Native); 12] = [
        ("log", log),
        ("now", now),
        ("random", random),
        ("part", part),
        ("settled", settled),
        ("encode", encoding::encode),
        ("decode", encoding::decode),
        ("atob", encoding::atob),
        ("btoa", encoding::btoa),
        ("parseUrl", url::parse),
        ("setUrl", url::set),
        ("query", url::query),
    ];
    for (name, function) in natives {
        define(name, Rc::new(NativeFunction { state: Rc::clone(state), function }))?;
    }
    let getter: Function<'_> = evaluate(ctx, STACK_GETTER, "bine:globals")?;
    state.callbacks.set_stack_getter(ctx, getter);
    let start: Function<'_> = evaluate(ctx, START, "bine:globals")?;
    start.call((native,)).map_err(thrown)
}

fn evaluate<'js>(ctx: &Ctx<'js>, source: &str, name: &str) -> Result<Function<'js>, Thrown> {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(source, options).map_err(|_| Thrown)
}

/// A function for the JavaScript of this module.
pub(super) type Native =
    for<'js> fn(&State, &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError>;

/// Why a native function has failed.
pub(super) enum NativeError {
    Host(HostError),
    /// An exception is pending.
    Thrown,
}

struct NativeFunction {
    state: Rc<State>,
    function: Native,
}

impl Callback for NativeFunction {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        (self.function)(&self.state, arguments).map_err(|error| match error {
            NativeError::Host(error) => self.state.throw(arguments.ctx(), &error),
            NativeError::Thrown => Thrown,
        })
    }
}

impl From<Thrown> for NativeError {
    fn from(_: Thrown) -> Self {
        Self::Thrown
    }
}

impl NativeError {
    pub(super) fn type_error(message: &str) -> Self {
        Self::Host(HostError::Type(message.to_owned()))
    }
}

/// An argument as text. The JavaScript of this module passes strings only.
pub(super) fn text(arguments: &Arguments<'_, '_>, index: usize) -> Result<String, NativeError> {
    let text = quickjs::with_text(&arguments.at(index), str::to_owned);
    text.ok_or_else(|| NativeError::type_error("a string is expected"))
}

/// Text as a value of the engine.
pub(super) fn new_text<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>, NativeError> {
    let text = rquickjs::String::from_str(ctx.clone(), text).map_err(|_| NativeError::Thrown)?;
    Ok(text.into_value())
}

/// `log(level, ...values)`.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all natives")]
fn log<'js>(state: &State, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError> {
    let level = match arguments.at(0).as_int() {
        Some(0) => Level::Debug,
        Some(2) => Level::Warning,
        Some(3) => Level::Error,
        _ => Level::Info,
    };
    let mut message = String::new();
    for index in 1..arguments.len() {
        message.push_str(if index == 1 { "" } else { " " });
        message.push_str(&exception::inspect(&arguments.at(index)));
        if message.len() > MAX_MESSAGE {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE));
            break;
        }
    }
    state.host.messages.log(level, &message);
    Ok(Value::new_undefined(arguments.ctx().clone()))
}

/// `now()`: milliseconds.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all natives")]
fn now<'js>(state: &State, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError> {
    let milliseconds = state.host.clock.now().as_secs_f64() * 1000.0;
    Ok(Value::new_number(arguments.ctx().clone(), milliseconds))
}

/// `random(bytes)`: fills a `Uint8Array`.
fn random<'js>(state: &State, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError> {
    let array = arguments.at(0);
    let length = quickjs::bytes_of(&array).map(|bytes| bytes.len());
    let Some(length) = length.filter(|length| *length <= MAX_RANDOM) else {
        let message = format!("getRandomValues() fills at most {MAX_RANDOM} bytes");
        return Err(NativeError::Host(HostError::Range(message)));
    };
    let mut bytes = vec![0; length];
    state.host.randomness.fill(&mut bytes);
    quickjs::fill_bytes(&array, &bytes);
    Ok(array.clone())
}

/// `part(name)`: the function that defines the global names of a part.
fn part<'js>(_: &State, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError> {
    let name = text(arguments, 0)?;
    let found = PARTS.iter().find(|(part, _)| *part == name);
    let (_, source) = found.ok_or_else(|| NativeError::type_error("unknown part"))?;
    Ok(evaluate(arguments.ctx(), source, "bine:globals")?.into_value())
}

/// `settled(key, is_fulfilled, value, is_module)`: the promise of a call is settled.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all natives")]
fn settled<'js>(state: &State, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, NativeError> {
    let key = arguments.at(0).as_number().unwrap_or(f64::MAX);
    let value = arguments.at(2);
    let outcome = if arguments.at(1).as_bool() == Some(true) {
        match value.as_object().filter(|_| arguments.at(3).as_bool() == Some(true)) {
            Some(namespace) => Ok(state.exports(namespace)),
            None => state.read_result(&value),
        }
    } else {
        Err(state.modules.explain(exception::of_value(&value)).into())
    };
    // The key was a slot, which is far below 2^53.
    #[expect(clippy::cast_sign_loss, reason = "the key is a slot, which is not negative")]
    state.settle_call(key as usize, outcome);
    Ok(Value::new_undefined(arguments.ctx().clone()))
}
