//! QuickJS with the reference implementation of the run-time.

use bine_tsx::{Module, Position, REFERENCE_RUNTIME, compile};
use rquickjs::loader::{BuiltinLoader, BuiltinResolver};
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Object, Promise, Runtime,
};

/// The words of the server, as far as the tests use them.
const BINE: &str = "
export { browser, raw, tree } from 'bine:runtime';
export const event = () => ({});
export const channel = () => ({});
export const navigate = () => {};
export const page = (render) => render;
export const service = (run) => Object.assign(run, { [Symbol.for('bine.url')]: '/board/post' });
export const table = () => ({});
export const text = () => ({});
export function Live() { throw new TypeError('Live is markup'); }
";

/// Compiles a module. Its errors end the test.
#[track_caller]
pub(crate) fn compiled(source: &str) -> Module {
    match compile("page.tsx", source) {
        Ok(module) => module,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}\n{source}", errors.join("\n"));
        }
    }
}

/// The markup that the default export of a module returns, or its error: the message, and the
/// position in the source.
#[track_caller]
pub(crate) fn page(source: &str) -> Result<String, String> {
    page_with(source, |_| {})
}

/// The same, with properties of the object that the page gets.
#[track_caller]
pub(crate) fn page_with(source: &str, fill: impl FnOnce(&Object<'_>)) -> Result<String, String> {
    let module = compiled(source);
    let runtime = Runtime::new().expect("an engine");
    let modules = BuiltinResolver::default().with_module("bine").with_module("bine:runtime");
    let loader = BuiltinLoader::default()
        .with_module("bine", BINE)
        .with_module("bine:runtime", REFERENCE_RUNTIME);
    runtime.set_loader(modules, loader);
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let given = Object::new(ctx.clone()).expect("an object");
        fill(&given);
        rendered(&ctx, &module, given).catch(&ctx).map_err(|error| described(&error, &module))
    })
}

fn rendered<'js>(ctx: &Ctx<'js>, module: &Module, given: Object<'js>) -> rquickjs::Result<String> {
    let (page, evaluated) =
        rquickjs::Module::declare(ctx.clone(), "page.tsx", module.code.clone())?.eval()?;
    evaluated.finish::<()>()?;
    let (support, evaluated) = rquickjs::Module::declare(
        ctx.clone(),
        "support",
        "import { markupOf } from 'bine:runtime';
         export const render = async (page, given) => markupOf(await page(given));",
    )?
    .eval()?;
    evaluated.finish::<()>()?;
    let render: Function<'js> = support.get("render")?;
    let page: Function<'js> = page.get("default")?;
    let promise: Promise<'js> = render.call((page, given))?;
    promise.finish()
}

/// The message of an exception and its place in the source: the first line of the stack that names
/// the module.
fn described(error: &CaughtError<'_>, module: &Module) -> String {
    let CaughtError::Exception(exception) = error else { return format!("{error:?}") };
    let message = exception.message().unwrap_or_default();
    let stack = exception.stack().unwrap_or_default();
    let place = stack.lines().find_map(|line| {
        let place = line.split_once("page.tsx:")?.1;
        let (line, column) = place.trim_end_matches(')').split_once(':')?;
        let position = Position { line: line.parse().ok()?, column: column.parse().ok()? };
        Some(module.source_position(position))
    });
    match place {
        Some(Position { line, column }) => format!("{line}:{column}: {message}"),
        None => message,
    }
}
