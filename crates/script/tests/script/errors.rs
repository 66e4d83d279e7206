//! Errors: lines and columns, causes, chains of imports, excerpts.

use crate::support::{Setup, script};

/// The error of calling `f`, as a log shows it.
fn check(source: &str, expected: &str) {
    let script = script(source);
    assert_eq!(script.call("f", &[]).unwrap_err().to_string(), expected);
    script.close();
}

/// The error of loading `index.js`.
fn check_load(files: &[(&str, &str)], expected: &str) {
    let script = Setup::of(files).start();
    let fault = script.run(script.instance.load("index.js")).unwrap_err();
    assert_eq!(fault.to_string(), expected);
    script.close();
}

#[test]
fn exceptions_have_true_lines_and_columns() {
    check(
        "const inner = (x) => {\n    return x.missing.name;\n};\nexport function f() {\n  return inner({});\n}",
        "TypeError: cannot read property 'name' of undefined\n    at inner (index.js:2:12)\n    at f (index.js:5:10)",
    );
    check(
        "export async function f() {\n  await null;\n  throw new RangeError('late');\n}",
        "RangeError: late\n    at f (index.js:3:13)",
    );
    check(
        "class Own extends Error { name = 'Own'; }\nexport const f = () => {\n  throw new Own('text', { cause: new Error('root') });\n};",
        "Own: text\n    at Own (index.js:1:1)\n    at f (index.js:3:38)\ncaused by Error: root\n    at f (index.js:3:38)",
    );
    check("export const f = () => { throw { a: [1, 'x'] } };", "uncaught: { a: [1, \"x\"] }");
}

#[test]
fn positions_are_those_of_the_module_that_fails() {
    let script = Setup::of(&[
        ("index.js", "import { g } from './lib/g.js';\nexport const f = () => g(1);"),
        ("lib/g.js", "\n\nexport function g(x) {\n  null.x;\n}"),
    ])
    .start();
    let fault = script.call("f", &[]).unwrap_err();
    assert_eq!(fault.error().unwrap().position().unwrap().to_string(), "lib/g.js:4:3");
    let frames = &fault.error().unwrap().frames;
    assert_eq!(frames.last().unwrap().position.as_ref().unwrap().file, "index.js");
}

#[test]
fn syntax_errors_show_the_line() {
    check_load(
        &[
            ("index.js", "import './a.js';"),
            ("a.js", "import './b.js';"),
            ("b.js", "export const x = 1;\nconst y = = 2;\n"),
        ],
        "SyntaxError: unexpected token in expression: '='\n    imported by index.js -> a.js -> b.js\n    2 | const y = = 2;\n      |           ^\n    at (anonymous) (b.js:2:11)",
    );
}

#[test]
fn load_errors_have_the_chain_of_imports() {
    check_load(
        &[("index.js", "import './a.js';"), ("a.js", "import './missing.js';")],
        "ImportError: there is no file missing.js\n    imported by index.js -> a.js -> missing.js",
    );
    check_load(
        &[("index.js", "import './a.js';"), ("a.js", "!the loader's reason")],
        "SyntaxError: the loader's reason\n    imported by index.js -> a.js",
    );
    check_load(
        &[("index.js", "import './a.js';"), ("a.js", "import 'react';")],
        "ImportError: \"react\" cannot be imported: an import names a file of the application, beginning with ./ or ../, or a built-in module such as \"bine\"\n    imported by index.js -> a.js",
    );
    check_load(
        &[("index.js", "import { x } from './a.js';"), ("a.js", "export const y = 1;")],
        "SyntaxError: Could not find export 'x' in module 'a.js'",
    );
    check_load(
        &[("index.js", "\nthrow new Error('top');")],
        "Error: top\n    at (anonymous) (index.js:2:11)",
    );
    check_load(&[], "ImportError: there is no file index.js");
}
