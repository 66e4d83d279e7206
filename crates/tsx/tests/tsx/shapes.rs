//! Shapes of arguments, derived from types.

use bine_tsx::{Field, Literal, Service, ServiceCall, Shape, compile};

/// Checks the shape of the type `A` that `types` declares, in a short form.
#[track_caller]
fn check(types: &str, expected: &str) {
    let source = format!(
        "import {{ service }} from \"bine\";\n{types}\nexport const s = service((ctx, a: A) => a);"
    );
    let found = match compile("s.ts", &source) {
        Ok(module) => spelled(&module.facts.services[0].argument),
        Err(errors) => {
            let first = &errors[0];
            assert_eq!(errors.len(), 1, "{types}");
            format!("{}:{}: {}", first.line, first.column, first.message)
        }
    };
    assert_eq!(found, expected, "{types}");
}

fn spelled(shape: &Shape) -> String {
    match shape {
        Shape::String => "string".into(),
        Shape::Number => "number".into(),
        Shape::Boolean => "boolean".into(),
        Shape::Upload => "Upload".into(),
        Shape::Sealed(value) => format!("sealed {}", spelled(value)),
        Shape::Array(item) => format!("[{}]", spelled(item)),
        Shape::OneOf(literals) => {
            let words = literals.iter().map(|literal| match literal {
                Literal::String(text) => format!("{text:?}"),
                Literal::Number(number) => number.to_string(),
                Literal::Boolean(literal) => literal.to_string(),
            });
            words.collect::<Vec<_>>().join("|")
        }
        Shape::Object(fields) => {
            let fields = fields.iter().map(|Field { name, is_optional, shape }| {
                format!("{name}{}: {}", if *is_optional { "?" } else { "" }, spelled(shape))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn derives_shapes_from_types() {
    check(
        "type A = { a: string; b?: number, readonly c: boolean };",
        "{a: string, b?: number, c: boolean}",
    );
    check(
        "type A = { a: \"x\" | \"y\"; b: 1 | -2; c: true };",
        "{a: \"x\"|\"y\", b: 1|-2, c: true}",
    );
    check(
        "type A = { a: string | undefined; b: \"x\" | undefined | \"y\" };",
        "{a?: string, b?: \"x\"|\"y\"}",
    );
    check(
        "interface A { a: string[]; b: Array<{ c: number }>; d: readonly B[] }\ntype B = C;\ntype C = (boolean);",
        "{a: [string], b: [{c: number}], d: [boolean]}",
    );
    check("export interface A { \"a-b\": string }", "{a-b: string}");
    check("type A = {};", "{}");
}

#[test]
fn rejects_types_that_it_cannot_check() {
    let write = "write an explicit shape of `string`, `number`, `boolean`, unions of literals, arrays, objects \
                 with optional fields, and types that this file declares";
    let cannot = |place: &str, what: &str| {
        format!("{place}: the server cannot check {what} in an argument: {write}")
    };
    check("type A = { a: any };", &cannot("2:15", "this type"));
    check("type A = { a: Date };", &cannot("2:15", "a type from elsewhere"));
    check("type A = { a: B<string> }; type B<T> = { b: T };", &cannot("2:15", "a generic type"));
    check("type A = { a: A };", &cannot("2:15", "a type that contains itself"));
    check(
        "interface A extends B { a: string } interface B { b: string }",
        &cannot("3:35", "a generic interface or one that extends another"),
    );
    check(
        "type A = { a: string | number };",
        &format!("2:15: the server checks a union of literals only in an argument: {write}"),
    );
    check("type A = { a(): void };", &format!("2:12: this is no field with a type: {write}"));
    check(
        "type A = { __proto__: string };",
        "2:12: an argument cannot have the field `__proto__`: choose another name",
    );
    check(
        "type A = string;",
        "3:33: the argument of a service is an object: `{ body }: { body: string }`",
    );
    check(
        &cyclic(),
        "15:12: this type is too large for an argument: at most 32 levels and 1000 parts",
    );
}

#[test]
fn accepts_files_as_arguments_and_lists_of_them() {
    let check_import = |import: &str, argument: &str, expected: &str| {
        check(&format!("import {{ {import} }} from \"bine\";\ntype A = {argument};"), expected);
    };
    check_import(
        "type Upload",
        "{ title: string; picture?: Upload; more: readonly Upload[] }",
        "{title: string, picture?: Upload, more: [Upload]}",
    );
    check_import("type Upload as Picture", "{ a: Picture | undefined }", "{a?: Upload}");
    let deep = "4:35: a form has a file under the name of an argument: write `picture: Upload` or \
                `pictures: Upload[]` in the object of the arguments itself";
    check_import("type Upload", "{ a: { b: Upload } }", deep);
    check_import("type Upload", "{ a: Upload[][] }", deep);
    check(
        "type A = { a: File };",
        "2:15: the type of a file in a form is `Upload` of \"bine\", not `File`: `import { type Upload } from \"bine\"`",
    );
}

/// Types that double in size with each declaration.
fn cyclic() -> String {
    let double = |number| format!("type A{number} = {{ a: A{}; b: A{0} }};\n", number + 1);
    let types: Vec<String> = (0..12).map(double).collect();
    format!("type A = A0;\n{}type A12 = {{ a: string }};", types.concat())
}

#[test]
fn finds_services_in_a_list_of_exports() {
    let source = "import { service } from \"bine\";\nconst save = service((ctx) => 1);\nexport { save as store };";
    let module = compile("s.ts", source).expect("a module");
    let Service { name, argument, position } = &module.facts.services[0];
    assert_eq!((name.as_str(), argument), ("store", &Shape::Object(Vec::new())));
    assert_eq!((position.line, position.column), (2, 7));
}

#[test]
fn finds_calls_of_services_in_rust() {
    let source = "import { order as buy, price } from \"bine:services\";\nimport * as rust from \"bine:services\";\n\
                  buy({ item: 'a', \"count\": -1, all: [], rest: null, far: `a`, x: y });\n\
                  rust.price({ ...more });\nprice();\nprice(more);\nconst f = (buy) => buy({ no: 1 });";
    let module = compile("s.ts", source).expect("a module");
    let calls: Vec<String> = module.facts.service_calls.iter().map(spelled_call).collect();
    assert_eq!(
        calls,
        [
            "3:1 order(item=Text(Some(\"a\")), count=Number, all=List, rest=Null, far=Text(None), x=Other)",
            "4:1 price(..)",
            "5:1 price()",
            "6:1 price?",
        ]
    );
}

fn spelled_call(call: &ServiceCall) -> String {
    let ServiceCall { service, position, arguments } = call;
    let given = match arguments {
        None => "?".to_owned(),
        Some(given) => {
            let each = given.named.iter().map(|own| format!("{}={:?}", own.name, own.value));
            let all: Vec<String> = each.chain(given.is_open.then(|| "..".to_owned())).collect();
            format!("({})", all.join(", "))
        }
    };
    format!("{}:{} {service}{given}", position.line, position.column)
}
