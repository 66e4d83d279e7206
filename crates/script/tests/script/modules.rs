//! Modules: relative imports, built-in modules, top-level await.

use bine_script::{HostModule, Value};

use crate::support::Setup;

#[test]
fn modules_import_each_other_once() {
    let script = Setup::of(&[
        ("index.js", "import { n } from './a/x.js'; import * as y from './a/y.js'; export default `${n} ${y.n} ${y.self.default ?? 'cycle'}`;"),
        ("a/x.js", "export { n } from '../n.js';"),
        ("a/y.js", "import * as self from '../index.js'; export { n } from './../n.js'; export { self };"),
        ("n.js", "globalThis.loaded = (globalThis.loaded ?? 0) + 1; export const n = globalThis.loaded;"),
    ])
    .start();
    let fault = script.run(script.instance.load("index.js")).unwrap_err().to_string();
    // The cycle reads a constant before its module has run.
    assert!(fault.starts_with("ReferenceError"), "{fault}");
    script.close();
}

#[test]
fn a_module_runs_once_for_all_importers() {
    let script = Setup::of(&[
        ("index.js", "import './a.js'; import './b.js'; export default globalThis.runs;"),
        ("a.js", "import './n.js';"),
        ("b.js", "import './n.js'; import './a.js';"),
        ("n.js", "globalThis.runs = (globalThis.runs ?? 0) + 1;"),
    ])
    .start();
    for _ in 0..3 {
        assert_eq!(script.load().property("default"), Some(&Value::Number(1.0)));
    }
    script.run(script.instance.load("n.js")).unwrap();
    assert_eq!(script.load().property("default"), Some(&Value::Number(1.0)));
    script.close();
}

#[test]
fn the_top_level_of_a_module_may_await() {
    let module = HostModule::new("bine:test")
        .async_function("later", |call| Ok(std::future::ready(Ok(call.value(0)?))));
    let mut setup = Setup::of(&[
        ("index.js", "import { x } from './a.js'; export const y = x + await 1;"),
        ("a.js", "import { later } from 'bine:test'; export const x = await later(41);"),
    ]);
    setup.modules.push(module);
    let script = setup.start();
    assert_eq!(script.load().property("y"), Some(&Value::Number(42.0)));
    script.close();
}

#[test]
fn modules_can_be_imported_while_running() {
    let script = Setup::of(&[
        ("index.js", "export const f = async (path) => (await import(path)).x;"),
        ("a.js", "export const x = 'loaded';"),
    ])
    .start();
    assert_eq!(script.call("f", &["./a.js".into()]), Ok("loaded".into()));
    let fault = script.call("f", &["./b.js".into()]).unwrap_err().to_string();
    assert!(fault.contains("there is no file b.js"), "{fault}");
    let fault = script.call("f", &["../a.js".into()]).unwrap_err().to_string();
    assert!(fault.contains("outside of the application's folder"), "{fault}");
    script.close();
}

#[test]
fn built_in_modules_may_be_written_in_javascript() {
    let module = HostModule::new("bine:internal/test").function("secret", |_| Ok("secret".into()));
    let mut setup = Setup::of(&[
        (
            "index.js",
            "import { open } from 'bine'; export const f = () => open(); export const direct = () => import('bine:internal/test');",
        ),
        (
            "bine",
            "import { secret } from 'bine:internal/test'; export const open = () => secret();",
        ),
    ]);
    setup.modules.push(module);
    let script = setup.start();
    assert_eq!(script.text("f"), "secret");
    let text = script.text("direct");
    assert!(text.contains("only built-in modules may import"), "{text}");
    script.close();
}

#[test]
fn the_number_and_size_of_modules_is_bounded() {
    let mut setup =
        Setup::of(&[("index.js", "import'./large.js'"), ("large.js", "/* 0123456789 */")]);
    setup.limits.module_bytes = 19;
    setup.files.0.insert("large.js".to_owned(), format!("/*{}*/", "x".repeat(100)));
    let script = setup.start();
    let fault = script.run(script.instance.load("index.js")).unwrap_err().to_string();
    assert!(fault.contains("larger than 19 bytes") && fault.contains("large.js"), "{fault}");

    let mut setup = Setup::of(&[(
        "index.js",
        "export const f = (n) => import(`./m${n}.js`).then(() => 'ok');",
    )]);
    for n in 0..20 {
        setup.files.0.insert(format!("m{n}.js"), String::new());
    }
    setup.limits.modules = 10;
    let script = setup.start();
    let results: Vec<_> =
        (0..20).map(|n| script.call("f", &[f64::from(n).into()]).is_ok()).collect();
    assert_eq!(results.iter().filter(|ok| **ok).count(), 9);
}

#[test]
fn import_attributes_and_json_are_not_supported() {
    let script = Setup::of(&[
        ("index.js", "import data from './data.json' with { type: 'json' };"),
        ("data.json", "{ \"a\": 1 }"),
    ])
    .start();
    let fault = script.run(script.instance.load("index.js")).unwrap_err().to_string();
    assert!(fault.starts_with("SyntaxError"), "{fault}");
}
