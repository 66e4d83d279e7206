//! Measures the compiler of TSX: a module of 1 000 lines with 100 handlers, and the same lines without
//! handlers.
//!
//! ```sh
//! cargo run --release --package bine-bench --example compile-tsx
//! ```

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Compilations of each module. The first ones are not counted.
const ROUNDS: usize = 60;
const WARM_UP: usize = 10;

fn main() {
    for (name, has_handlers) in [("with 100 handlers", true), ("without handlers", false)] {
        let source = module(has_handlers);
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                let compiled = bine_tsx::compile("index.tsx", &source);
                assert!(compiled.is_ok(), "{:?}", compiled.err());
                began.elapsed()
            })
            .skip(WARM_UP)
            .collect();
        times.sort_unstable();
        let (lines, bytes) = (source.lines().count(), source.len());
        println!(
            "{name}: {lines} lines, {bytes} bytes: median {:?}, {:?} to {:?}",
            times[times.len() / 2],
            times[0],
            times[times.len() - 1]
        );
    }
}

/// A module of 1 000 lines: 100 components of ten lines, less those of the head.
fn module(has_handlers: bool) -> String {
    let mut text = String::from(
        "import { page, service, table, text } from \"bine\";\nconst tasks = table(\"tasks\", { title: text() });\nexport const add = service((ctx, { title }: { title: string }) => tasks.insert({ title }));\nconst problem = (title: string): string => title.length > 20 ? `${title.length - 20} too many` : \"\";\n",
    );
    for number in 0..99 {
        let handler = if has_handlers {
            "onclick={async (event) => { if (problem(task.title)) return; await add({ title: task.title + n }); event.currentTarget.blur(); }}"
        } else {
            "class={[problem(task.title), task.title + n, \"wide\"]}"
        };
        // A `String` takes any text.
        let _ = writeln!(
            text,
            "function Part{number}({{ n }}: {{ n: number }}) {{\n  const all = tasks.newest(20);\n  return (\n    <ul id=\"part{number}\">\n      {{all.map((task) => (\n        <li {handler}>\n          {{task.title}} <b>{{n}}</b>\n        </li>))}}\n    </ul>);\n}}"
        );
    }
    text.push_str("export default page(() => (\n  <main>\n");
    for number in 0..3 {
        let _ = writeln!(text, "    <Part{number} n={{{number}}} />");
    }
    text.push_str("  </main>\n));\n");
    text
}
