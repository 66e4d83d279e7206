//! Measures the compiler and generated code: `cargo run --release -p bine-tsx --example measure_tsx`.
//!
//! The run-time is native here, as in a server: one call for each piece of markup escapes and joins
//! its holes. The page has 20 rows with three escaped values each.

use std::hint::black_box;

use bine_html::Writer;
use bine_tsx::compile;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Rest};
use rquickjs::{
    CatchResultExt as _, Class, Context, Ctx, Exception, Function, JsLifetime, Module, Result,
    Runtime, Value,
};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: u32 = 5_000;

const PAGE: &str = "
export default (rows) => (
  <main>
    <h1>Forum</h1>
    <ul>
      {rows.map((row) => <li id={row.id}>{row.body} <small>{row.by}</small></li>)}
    </ul>
  </main>
);
";

const ROWS: &str =
    "Array.from({ length: 20 }, (_, n) => ({ id: 'm' + n, body: 'a < b & c', by: 'ann' }))";

/// The CPU time of the process, with all its threads: other programs do not count.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The same page as one expression of strings.
const BY_HAND: &str = r#"(rows) => '<main><h1>Forum</h1><ul>' + rows.map((row) =>
    '<li id="' + escaped(row.id) + '">' + escaped(row.body) + ' <small>' + escaped(row.by) + '</small></li>'
  ).join('') + '</ul></main>'"#;

fn main() {
    measure_compiler();
    measure_page();
}

/// A module of 1 000 lines, a third of them markup.
fn module_of_1000_lines() -> String {
    let mut source = String::from("import { page, service, Live } from \"bine\";\n");
    let mut number = 0;
    while source.lines().count() < 990 {
        number += 1;
        let part = format!(
            "type Row{number} = {{ id: number; name: string; tags?: string[] }};\n\
             const rows{number}: Row{number}[] = [];\n\
             export function find{number}(name: string, limit: number = 10): Row{number} | undefined {{\n\
             \x20 const found = rows{number}.filter((row) => row.name === name).slice(0, limit);\n\
             \x20 return found.length > 0 ? found[0]! : undefined;\n\
             }}\n\
             export const save{number} = service((ctx, row: Row{number}) => row.id);\n\
             export const List{number} = ({{ title, rows }}: {{ title: string; rows: Row{number}[] }}) => (\n\
             \x20 <section class=\"list\">\n\
             \x20   <h2>{{title}}</h2>\n\
             \x20   <ul>{{rows.map((row) => <li id={{`row${{row.id}}`}}><a href={{`/rows/${{row.id}}`}}>{{row.name}}</a></li>)}}</ul>\n\
             \x20   <Live><p style=\"color: red\">{{rows.length}} rows</p></Live>\n\
             \x20   <form action={{save{number}}}><input name=\"name\" required maxlength=\"500\" /><button>Save</button></form>\n\
             \x20 </section>\n\
             );\n"
        );
        source.push_str(&part);
    }
    source
}

fn measure_compiler() {
    let source = module_of_1000_lines();
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let start = cpu_seconds();
            if let Err(errors) = black_box(compile("page.tsx", black_box(&source))) {
                panic!("{}", errors[0]);
            }
            (cpu_seconds() - start) * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let lines = source.lines().count();
    println!(
        "compile {lines} lines, {} KB: median {:.1} ms, worst {:.1} ms",
        source.len() / 1024,
        times[10],
        times[19]
    );
}

fn measure_page() {
    let module = compile("page.tsx", PAGE).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let runtime = Runtime::new().expect("an engine");
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let run = || -> Result<()> {
            // The import of generated code, as globals: the example needs no loader.
            let (_, code) = module.code.split_once(';').expect("an import");
            ctx.globals().set("$markup", Function::new(ctx.clone(), markup)?)?;
            ctx.globals().set("$html", Function::new(ctx.clone(), Html::call)?)?;
            let (page, evaluated) = Module::declare(ctx.clone(), "page.tsx", code)?.eval()?;
            evaluated.finish::<()>()?;
            let page: Function<'_> = page.get("default")?;
            let rows: Value<'_> = ctx.eval(ROWS)?;
            ctx.globals().set("escaped", Function::new(ctx.clone(), escaped)?)?;
            let by_hand: Function<'_> = ctx.eval(BY_HAND)?;
            let (mut best, mut best_by_hand, mut length) = (f64::INFINITY, f64::INFINITY, 0);
            for _ in 0..10 {
                let time = measure(|| {
                    let html: Class<'_, Html> = page.call((rows.clone(),))?;
                    length = black_box(html.borrow().0.len());
                    Ok(())
                })?;
                best = best.min(time);
                let time = measure(|| {
                    let html: String = by_hand.call((rows.clone(),))?;
                    assert_eq!(black_box(html).len(), length);
                    Ok(())
                })?;
                best_by_hand = best_by_hand.min(time);
            }
            println!("page of {length} bytes with 20 rows: {best:.2} us");
            println!(
                "the same, written by hand with `+` and a native escape: {best_by_hand:.2} us"
            );
            Ok(())
        };
        if let Err(error) = run().catch(&ctx) {
            panic!("{error}");
        }
    });
}

/// The microseconds of CPU time of one run.
fn measure(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = cpu_seconds();
    for _ in 0..ROUNDS {
        run()?;
    }
    Ok((cpu_seconds() - start) * 1e6 / f64::from(ROUNDS))
}

#[expect(clippy::needless_pass_by_value, reason = "the engine passes values")]
fn escaped(text: String) -> String {
    let mut out = Vec::with_capacity(text.len() + 16);
    Writer::new(&mut out).text(&text);
    String::from_utf8(out).expect("text")
}

/// Markup: the class has no constructor, so a script cannot make it.
struct Html(Vec<u8>);

/// Constant pieces and the kinds of holes.
struct Template {
    pieces: Vec<String>,
    holes: Vec<String>,
}

fn markup(ctx: Ctx<'_>, pieces: Vec<String>, holes: Vec<String>) -> Result<Class<'_, Template>> {
    Class::instance(ctx, Template { pieces, holes })
}

impl Html {
    #[expect(clippy::needless_pass_by_value, reason = "the engine passes values")]
    fn call<'js>(
        ctx: Ctx<'js>,
        template: Class<'js, Template>,
        values: Rest<Value<'js>>,
    ) -> Result<Class<'js, Self>> {
        let template = template.borrow();
        let mut out = Vec::with_capacity(256);
        let mut values = values.0.iter();
        out.extend_from_slice(template.pieces[0].as_bytes());
        for (hole, piece) in template.holes.iter().zip(&template.pieces[1..]) {
            let value = values.next().ok_or_else(|| Exception::throw_type(&ctx, "a value"))?;
            let is_attribute = hole.starts_with('a');
            if is_attribute {
                out.extend_from_slice(b" ");
                out.extend_from_slice(&hole.as_bytes()[1..]);
                out.extend_from_slice(b"=\"");
            }
            text(&ctx, value, &mut out)?;
            out.extend_from_slice(if is_attribute { b"\"" } else { b"" });
            out.extend_from_slice(piece.as_bytes());
        }
        Class::instance(ctx, Self(out))
    }
}

fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>, out: &mut Vec<u8>) -> Result<()> {
    if let Some(text) = value.as_string() {
        let text = text.clone().to_cstring()?;
        Writer::new(out).text(text.as_str());
        return Ok(());
    }
    let object = value.as_object().ok_or_else(|| Exception::throw_type(ctx, "a hole"))?;
    if let Some(html) = Class::<Html>::from_object(object) {
        out.extend_from_slice(&html.borrow().0);
        return Ok(());
    }
    let items = object.as_array().ok_or_else(|| Exception::throw_type(ctx, "a hole"))?;
    for item in items.iter::<Value<'js>>() {
        text(ctx, &item?, out)?;
    }
    Ok(())
}

macro_rules! class {
    ($($name:ident)*) => {$(
        // SAFETY: the type has no lifetime, so that it is the same type for each.
        unsafe impl<'js> JsLifetime<'js> for $name {
            type Changed<'to> = $name;
        }

        impl<'js> Trace<'js> for $name {
            fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
        }

        impl<'js> JsClass<'js> for $name {
            const NAME: &'static str = stringify!($name);
            type Mutable = Readable;

            fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
                Ok(None)
            }
        }
    )*};
}

class!(Html Template);
