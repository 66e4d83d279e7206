//! Deep and large modules.

use bine_tsx::{MAX_NESTING, MAX_SOURCE, compile};
use proptest::prelude::*;

#[test]
fn long_chains_do_not_overflow_the_stack() {
    for (before, link, after) in [
        ("x = ", "!", "a;"),
        ("x = ", "a=>", "a;"),
        ("x = ", "a?a:", "a;"),
        ("x = ", "a**", "a;"),
        ("x = ", "new ", "a;"),
        ("x = a", ".b", ";"),
        ("x = a", " as B", ";"),
        ("", "if(a)", "b;"),
        ("", "for(;;)", "b;"),
        ("type A = ", "keyof ", "B;"),
        ("type A = ", "B extends C ? D : ", "E;"),
    ] {
        let source = format!("{before}{}{after}", link.repeat(10_000));
        assert!(compile("a.tsx", &source).is_ok(), "{link}");
    }
    let nested = |depth| format!("x = {}a{};", "<b>".repeat(depth), "</b>".repeat(depth));
    assert!(compile("a.tsx", &nested(2_000)).is_ok());
}

#[test]
fn rejects_modules_beyond_the_limits() {
    let deep = |depth: usize| format!("x = {}a{};", "(".repeat(depth), ")".repeat(depth));
    assert!(compile("a.tsx", &deep(MAX_NESTING)).is_ok());
    let errors = compile("a.tsx", &deep(MAX_NESTING + 1)).unwrap_err();
    assert_eq!(errors[0].message, "brackets are nested more than 256 deep");
    assert_eq!((errors[0].line, errors[0].column), (1, 5 + 256));
    let errors = compile("a.tsx", &"\n".repeat(MAX_SOURCE + 1)).unwrap_err();
    assert_eq!(errors[0].message, "the module has more than 1048576 bytes: split it");
}

#[test]
fn reports_at_most_fifty_errors() {
    let source = format!("x = <p>{}</p>;", "<buton>a</buton>".repeat(80));
    assert_eq!(compile("a.tsx", &source).unwrap_err().len(), 50);
}

#[test]
fn keeps_byte_order_marks_and_interpreters_out_of_the_code() {
    let first_line = |source: &str| {
        let module = compile("a.tsx", source).expect("a module");
        assert_eq!(module.code.lines().nth(1), Some("x = $html($m0);"));
        module.code.lines().next().map(str::to_owned).unwrap_or_default()
    };
    assert!(first_line("\u{feff}a;\nx = <p>b</p>;").starts_with("import{"));
    assert!(first_line("#!/usr/bin/bine\nx = <p>b</p>;").ends_with(";///usr/bin/bine"));
}

/// Parts of modules, joined at random.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<p>",
        "</p>",
        "<Live>",
        "</Live>",
        "<",
        ">",
        "</",
        "/>",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "a",
        "\u{e4}",
        " ",
        "\n",
        ";",
        ",",
        ":",
        "=",
        "=>",
        "!",
        "?",
        ".",
        "...",
        "\"",
        "'",
        "`",
        "${",
        "as ",
        "type A = ",
        "string",
        "interface B ",
        "class C ",
        "private ",
        "export ",
        "default ",
        "import ",
        "from \"bine\"",
        "{ Live }",
        "const ",
        "function f",
        "async ",
        "await ",
        "return ",
        "abstract ",
        "declare ",
        "readonly ",
        "enum E",
        "@d ",
        "1",
        "//",
        "/*",
        "*/",
        "<T,>",
        "service(",
        "(ctx, a: { b: string }) => a",
        "style=\"color: red\"",
        "{...a}",
        "class={a}",
        "<br />",
        "<Card ",
        "\u{2028}",
        "\r\n",
        "satisfies ",
        "a && ",
        ".map((a) => ",
    ])
}

proptest! {
    #[test]
    fn any_module_compiles_or_reports_errors(parts in prop::collection::vec(part(), 0..40)) {
        let source = parts.concat();
        match compile("a.tsx", &source) {
            Ok(module) => {
                let lines = |text: &str| text.split('\n').count();
                prop_assert_eq!(lines(&module.code), lines(&source));
            }
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                for error in errors {
                    prop_assert!(!error.message.contains("a defect"), "{}", error);
                }
            }
        }
    }
}
