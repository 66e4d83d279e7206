//! Tests of the arguments of services.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::{option, sample};
use serde_json::{Value as Json, json};

use super::*;
use crate::languages::VisitorWords;
use crate::service::ServiceArguments;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// The shape of the argument of a service in TSX.
fn shape(annotation: &str) -> Shape {
    let source = format!(
        "import {{ service }} from \"bine\"; export const a = service((ctx, given: {annotation}) => 1);"
    );
    let module = bine_tsx::compile("index.tsx", &source).unwrap_or_else(|all| panic!("{all:?}"));
    module.facts.services[0].argument.clone()
}

/// Reads an argument without sealed values.
fn read(given: &CallArguments, shape: &Shape) -> Result<Value, Vec<ArgumentError>> {
    super::read(given, shape, |_, _| None)
}

fn given(kind: &str, content: &str) -> CallArguments {
    CallArguments::in_content(kind, content.as_bytes()).unwrap()
}

#[track_caller]
fn check(annotation: &str, kind: &str, content: &str, expected: &Result<Json, &str>) {
    let found = read(&given(kind, content), &shape(annotation));
    let found = found.map(|value| json_of(&value));
    let found = found.map_err(|wrong| ArgumentError::sentence(&wrong, &VisitorWords::ENGLISH));
    assert_eq!(found.as_ref().map_err(|told| &**told), expected.as_ref().map_err(|told| *told));
}

#[track_caller]
fn accepts(annotation: &str, kind: &str, content: &str, expected: Json) {
    check(annotation, kind, content, &Ok(plain(expected)));
}

#[track_caller]
fn rejects(annotation: &str, kind: &str, content: &str, expected: &str) {
    check(annotation, kind, content, &Err(expected));
}

/// The value as JSON, with all numbers as 64-bit floats.
fn json_of(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Number(number) => (*number).into(),
        Value::Bool(given) => (*given).into(),
        Value::Array(items) => items.iter().map(json_of).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| (name.clone(), json_of(value))).collect()
        }
        other => panic!("no argument is {other:?}"),
    }
}

/// The same JSON, with all numbers as 64-bit floats.
fn plain(json: Json) -> Json {
    match json {
        Json::Number(number) => number.as_f64().unwrap().into(),
        Json::Array(items) => items.into_iter().map(plain).collect(),
        Json::Object(members) => {
            members.into_iter().map(|(name, value)| (name, plain(value))).collect()
        }
        other => other,
    }
}

const POST: &str = "{ body: string, size: number, loud: boolean, tags: string[], \
                    state?: 'open' | 'shut', parent?: { id: string, depth?: number } }";

#[test]
fn reads_sealed_values_that_open() {
    let shape = {
        let source = "import { service, type Sealed } from \"bine\"; export const a = service((ctx, given: { id: Sealed<{ n: number }>; at?: Sealed<string> }) => 1);";
        bine_tsx::compile("index.tsx", source).expect("a module").facts.services[0].argument.clone()
    };
    let open = |name: &str, text: &str| match (name, text) {
        ("id", "good") => Some(b"{\"n\":7}".to_vec()),
        ("id", "old") => Some(b"{\"n\":\"7\"}".to_vec()),
        ("id", "broken") => Some(b"{".to_vec()),
        ("at", "time") => Some(b"\"now\"".to_vec()),
        _ => None,
    };
    let read = |kind: &str, content: &str| super::read(&given(kind, content), &shape, open);
    let n = |number| Value::Object(vec![("n".to_owned(), Value::Number(number))]);
    let id = ("id".to_owned(), n(7.0));
    let at = ("at".to_owned(), Value::Text("now".to_owned()));
    let both = Value::Object(vec![id.clone(), at]);
    assert_eq!(read(JSON, "{\"id\":\"good\"}"), Ok(Value::Object(vec![id])));
    assert_eq!(read(JSON, "{\"id\":\"good\",\"at\":\"time\"}"), Ok(both.clone()));
    assert_eq!(read(FORM, "id=good&at=time"), Ok(both));
    for text in ["other", "old", "broken", "time", "{\\\"n\\\":7}"] {
        let wrong = read(JSON, &format!("{{\"id\":\"{text}\"}}")).unwrap_err();
        assert_eq!(wrong, [ArgumentError::new("id", NOT_SEALED.to_owned())], "{text}");
    }
    for content in ["{}", "{\"id\":{\"n\":7}}", "{\"id\":7}", "{\"id\":null}"] {
        let wrong = read(JSON, content).unwrap_err();
        assert_eq!((wrong.len(), &*wrong[0].name), (1, "id"), "{content}");
    }
}

#[test]
fn reads_arguments_from_json_and_forms() {
    let text = r#"{"tags":["a","b"],"body":"hi","size":-2.5,"loud":true,
                   "parent":{"id":"7"},"state":null}"#;
    let expected = json!({ "body": "hi", "size": -2.5, "loud": true, "tags": ["a", "b"],
                           "parent": { "id": "7" } });
    accepts(POST, JSON, text, expected);
    let form = "body=hi&size=-2.5&loud=on&tags=a&tags=b&state=shut&body=ignored";
    let expected = json!({ "body": "hi", "size": -2.5, "loud": true, "tags": ["a", "b"],
                           "state": "shut" });
    accepts(POST, FORM, form, expected);
    // A browser sends neither an unchecked checkbox nor the absence of a text.
    let expected = json!({ "body": "", "size": 0, "loud": false, "tags": [] });
    accepts(POST, FORM, "body=&size=0&state=", expected);
    accepts("{}", JSON, "", json!({}));
}

#[test]
fn reports_all_wrong_arguments_at_once() {
    rejects(
        POST,
        JSON,
        r#"{"bod":"a","size":"7","loud":null,"tags":[1],"state":"ajar","parent":{"id":"7","deep":1}}"#,
        "`bod` is no argument of this service; did you mean `body`?; \
         `body` is missing; \
         `size` is not what is expected: invalid type: string \"7\", expected f64; \
         `loud` is not what is expected: invalid type: unit value, expected a boolean; \
         `tags` is not what is expected: invalid type: integer `1`, expected a string (at [0]); \
         `state` is not what is expected: unknown variant `ajar`, expected `open` or `shut`; \
         `parent` is not what is expected: unknown field `deep`, expected `id` or `depth` (at deep)",
    );
    rejects(
        POST,
        FORM,
        "size=x&loud=maybe&state=ajar&parent=a",
        "`body` is missing; \
         `size` must be a number, not `x`; \
         `loud` must be true or false, not `maybe`; \
         `state` is not what is expected: unknown variant `ajar`, expected `open` or `shut`; \
         `parent` cannot come from a form: send it as JSON",
    );
}

#[test]
fn names_the_place_in_nested_values() {
    let annotation = "{ items: { name: string, marks: (1 | 2 | 3)[] }[] }";
    let item = r#"{"name":"a","marks":[1]}"#;
    let told = |item: &str, words: &str| {
        rejects(
            annotation,
            JSON,
            &format!(r#"{{"items":[{{"name":"","marks":[]}},{item}]}}"#),
            &format!("`items` is not what is expected: {words}"),
        );
    };
    accepts(
        annotation,
        JSON,
        &format!(r#"{{"items":[{item}]}}"#),
        json!({ "items": [{ "name": "a", "marks": [1] }] }),
    );
    told(r#"{"name":7,"marks":[]}"#, "invalid type: integer `7`, expected a string (at [1].name)");
    told(r#"{"marks":[]}"#, "missing field `name` (at [1])");
    told(
        r#"{"name":"","marks":[1,4]}"#,
        "unknown variant `4`, expected one of `1`, `2`, `3` (at [1].marks[1])",
    );
    told("[]", "invalid type: sequence, expected an object (at [1])");
    let more = r#"{"name":"","marks":[],"constructed":1}"#;
    told(more, "unknown field `constructed`, expected `name` or `marks` (at [1].constructed)");
}

#[test]
fn reads_constants_of_each_kind() {
    accepts("{ a: 1 | -2 }", FORM, "a=-2.0", json!({ "a": -2 }));
    accepts("{ a: 1 | -2 }", JSON, r#"{"a":1.0}"#, json!({ "a": 1 }));
    accepts("{ a: true | false }", FORM, "", json!({ "a": false }));
    accepts("{ a: 'auto' | 1 | true }", FORM, "a=1", json!({ "a": 1 }));
    accepts("{ a: 'auto' | 1 | true }", FORM, "a=on", json!({ "a": true }));
    accepts("{ a: 'auto' | 1 | true }", JSON, r#"{"a":true}"#, json!({ "a": true }));
    let expected = "`a` is not what is expected: ";
    let wrong = |annotation: &str, kind: &str, content: &str, words: &str| {
        rejects(annotation, kind, content, &format!("{expected}{words}"));
    };
    wrong("{ a: 1 | 2 }", JSON, r#"{"a":"1"}"#, "invalid type: string \"1\", expected `1` or `2`");
    wrong("{ a: 1 | 2 }", FORM, "a=3", "unknown variant `3`, expected `1` or `2`");
    wrong("{ a: true }", FORM, "", "unknown variant `false`, expected `true`");
    wrong("{ a: 'b' | 'c' }", JSON, r#"{"a":{}}"#, "invalid type: map, expected `b` or `c`");
    rejects("{ a: 1 | 2 }", FORM, "a=x", "`a` must be a number, not `x`");
    rejects("{ a: 'b' }", FORM, "", "`a` is missing");
    let long = "x".repeat(50_000);
    let told = read(&given(FORM, &format!("a={long}")), &shape("{ a: 'b' }")).unwrap_err();
    assert!(told[0].detail.len() < 200, "{told:?}");
}

#[test]
fn rejects_numbers_that_a_script_cannot_have() {
    for text in ["NaN", "inf", "-infinity", "1e999"] {
        let told = read(&given(FORM, &format!("a={text}")), &shape("{ a: number }"));
        let told = told.unwrap_err();
        assert!(told[0].detail.ends_with("expected a finite number"), "{told:?}");
    }
}

#[test]
fn rejects_keys_that_reach_a_prototype() {
    let annotation = "{ a?: { b?: number }[] }";
    for key in ["__proto__", "constructor", "prototype"] {
        // The parser of JSON rejects them at any depth.
        for text in [format!(r#"{{"{key}":1}}"#), format!(r#"{{"a":[{{"{key}":{{}}}}]}}"#)] {
            assert!(CallArguments::in_content(JSON, text.as_bytes()).is_err(), "{text}");
        }
        let told = read(&given(FORM, &format!("{key}=1")), &shape(annotation)).unwrap_err();
        assert_eq!(&*told[0].detail, "is no argument of this service");
    }
}

/// Reads the same content as a service in Rust and as one in TSX.
#[track_caller]
fn check_like_rust<T: ServiceArguments + fmt::Debug>(annotation: &str, kind: &str, content: &str) {
    let given = given(kind, content);
    let names = [("state", ""), ("more", "")];
    let rust = T::take(&given, &names).map(drop);
    assert_eq!(read(&given, &shape(annotation)).map(drop), rust, "{annotation} {content}");
}

#[derive(Debug, serde::Deserialize)]
enum State {
    Packed,
    Sent,
    Lost,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    count: Option<f64>,
}

#[test]
fn reports_mistakes_in_the_words_of_rust_services() {
    let _ = [State::Packed, State::Sent, State::Lost].map(|state| format!("{state:?}"));
    let states = "{ state: 'Packed' | 'Sent' | 'Lost', more?: number }";
    for (kind, content) in [
        (JSON, r#"{"state":"Packed","more":null}"#),
        (JSON, r#"{"state":"Broken","more":"x"}"#),
        (JSON, r#"{"mor":1,"other":2}"#),
        (FORM, "state=Sent&more="),
        (FORM, "state=Broken&more=x"),
        (FORM, "state=Lost&more=1&more=2"),
        (FORM, "stat=Lost"),
    ] {
        check_like_rust::<(State, Option<f64>)>(states, kind, content);
    }
    let flags = "{ state: boolean, more: number[] }";
    for (kind, content) in [
        (JSON, r#"{"state":true,"more":[1,2.5]}"#),
        (JSON, r#"{"state":1,"more":{}}"#),
        (JSON, r#"{"more":[1,null]}"#),
        (FORM, "more=1&more=x"),
        (FORM, "state=on"),
        (FORM, "state=2"),
    ] {
        check_like_rust::<(bool, Vec<f64>)>(flags, kind, content);
    }
    let items = "{ state: string, more?: { name: string, count?: number }[] }";
    for (kind, content) in [
        (JSON, r#"{"state":"","more":[{"name":""},{"name":"","count":null}]}"#),
        (JSON, r#"{"state":[],"more":[{"name":"","count":"1"}]}"#),
        (JSON, r#"{"state":"","more":[{"count":1}]}"#),
        (JSON, r#"{"state":"","more":[{"name":"","cont":1}]}"#),
        (FORM, "state=a&more=b"),
        (FORM, "state=a&more="),
    ] {
        check_like_rust::<(String, Option<Vec<Item>>)>(items, kind, content);
    }
    let item = Item { name: String::new(), count: None };
    assert!(item.name.is_empty() && item.count.is_none());
}

fn finite_number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite())
}

fn constants() -> impl Strategy<Value = Shape> {
    prop_oneof![
        vec("[a-c]{1,3}", 1..4)
            .prop_map(|all| Shape::OneOf(all.into_iter().map(Literal::String).collect())),
        vec(-3..3_i8, 1..4).prop_map(|all| {
            Shape::OneOf(all.into_iter().map(|own| Literal::Number(own.into())).collect())
        }),
        any::<bool>().prop_map(|own| Shape::OneOf(vec![Literal::Boolean(own)])),
    ]
}

fn scalar() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::String), Just(Shape::Number), Just(Shape::Boolean), constants()]
}

/// A shape that a form can send.
fn flat() -> impl Strategy<Value = Shape> {
    let list = prop_oneof![Just(Shape::String), Just(Shape::Number), constants()];
    prop_oneof![scalar(), list.prop_map(|item| Shape::Array(Box::new(item)))]
}

fn object(value: impl Strategy<Value = Shape>) -> impl Strategy<Value = Shape> {
    btree_map("[a-z]{1,6}", (any::<bool>(), value), 0..5).prop_map(|fields| {
        let fields = fields.into_iter().map(|(name, (is_optional, shape))| Field {
            name,
            is_optional,
            shape,
        });
        Shape::Object(fields.collect())
    })
}

fn nested() -> impl Strategy<Value = Shape> {
    let any = scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| Shape::Array(Box::new(item))),
            object(inner).boxed(),
        ]
    });
    object(any)
}

/// Any JSON that fits a shape.
fn fitting(shape: &Shape) -> BoxedStrategy<Json> {
    match shape {
        Shape::String => any::<String>().prop_map(Json::from).boxed(),
        Shape::Number => {
            prop_oneof![finite_number().prop_map(Json::from), any::<i32>().prop_map(Json::from)]
                .boxed()
        }
        Shape::Boolean => any::<bool>().prop_map(Json::from).boxed(),
        Shape::OneOf(constants) => sample::select(constants.clone())
            .prop_map(|constant| json_of(&value_of(&constant)))
            .boxed(),
        Shape::Array(item) => vec(fitting(item), 0..4).prop_map(Json::from).boxed(),
        Shape::Object(fields) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            let values: Vec<BoxedStrategy<Option<Json>>> = fields
                .iter()
                .map(|field| {
                    let value = fitting(&field.shape);
                    if field.is_optional {
                        option::of(value).boxed()
                    } else {
                        value.prop_map(Some).boxed()
                    }
                })
                .collect();
            let object = values.prop_map(move |values| {
                let members = names.iter().cloned().zip(values);
                members.filter_map(|(name, value)| Some((name, value?))).collect()
            });
            object.boxed()
        }
        Shape::Upload | Shape::Sealed(_) => panic!("JSON has no such value"),
    }
}

fn case(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = (Shape, Json)> {
    shape.prop_flat_map(|shape| {
        let json = fitting(&shape);
        (Just(shape), json)
    })
}

/// A change that makes a value unfit, and the place that the error must have.
#[derive(Clone, Debug)]
struct Mutation {
    json: Json,
    place: String,
    words: String,
}

/// All values in which one part does not fit.
fn mutations(shape: &Shape, json: &Json) -> Vec<Mutation> {
    let mut all = Vec::new();
    let wrong = match shape {
        Shape::String => json!(7),
        _ => json!("\u{1}no value of this shape"),
    };
    all.push(Mutation { json: wrong, place: String::new(), words: String::new() });
    let inside = |inner: Mutation, step: String, place: &dyn Fn(Json) -> Json| {
        let is_name = !inner.place.is_empty() && !inner.place.starts_with('[');
        let dot = if is_name { "." } else { "" };
        let place_of = format!("{step}{dot}{}", inner.place);
        Mutation { json: place(inner.json), place: place_of, words: inner.words }
    };
    match (shape, json) {
        (Shape::Array(item), Json::Array(items)) => {
            for (index, own) in items.iter().enumerate() {
                for inner in mutations(item, own) {
                    all.push(inside(inner, format!("[{index}]"), &|own| {
                        let mut items = items.clone();
                        items[index] = own;
                        Json::Array(items)
                    }));
                }
            }
        }
        (Shape::Object(fields), Json::Object(members)) => {
            for field in fields {
                let Some(own) = members.get(&field.name) else { continue };
                for inner in mutations(&field.shape, own) {
                    all.push(inside(inner, field.name.clone(), &|own| {
                        let mut members = members.clone();
                        members.insert(field.name.clone(), own);
                        Json::Object(members)
                    }));
                }
                if !field.is_optional {
                    let mut members = members.clone();
                    members.remove(&field.name);
                    let words = format!("missing field `{}`", field.name);
                    let json = Json::Object(members);
                    all.push(Mutation { json, place: String::new(), words });
                }
            }
            let mut members = members.clone();
            members.insert("unknown_1".to_owned(), json!(1));
            let json = Json::Object(members);
            let words = "unknown field `unknown_1`".to_owned();
            all.push(Mutation { json, place: "unknown_1".to_owned(), words });
        }
        _ => {}
    }
    all
}

/// The form that has the same values, if a form can express them.
fn form_of(fields: &[Field], json: &Json) -> Option<String> {
    let encode = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        bytes.concat()
    };
    let mut form = String::new();
    for Field { name, is_optional, .. } in fields {
        let items = match json.get(name) {
            None => continue,
            Some(Json::Array(items)) => items.clone(),
            // A browser does not send an unchecked checkbox.
            Some(Json::Bool(false)) if !is_optional => continue,
            Some(one) => vec![one.clone()],
        };
        // An empty text is the absence of an optional value.
        if *is_optional && (items.is_empty() || items == [json!("")]) {
            return None;
        }
        for item in items {
            let text = match item {
                Json::String(text) => text,
                Json::Bool(true) => "on".to_owned(),
                other => other.to_string(),
            };
            form.extend([name, "=", &encode(&text), "&"]);
        }
    }
    Some(form)
}

proptest! {
    #[test]
    fn accepts_what_fits((shape, json) in case(nested())) {
        let found = read(&given(JSON, &json.to_string()), &shape);
        let found = found.map(|value| json_of(&value));
        prop_assert_eq!(found, Ok(plain(json)));
    }

    #[test]
    fn rejects_what_does_not_fit_with_its_place(
        (shape, json) in case(nested()), choice: sample::Index,
    ) {
        // The first mutation replaces the whole argument, which is an object always.
        let all = mutations(&shape, &json);
        let mutation = &all[1..][choice.index(all.len() - 1)];
        let wrong = read(&given(JSON, &mutation.json.to_string()), &shape).unwrap_err();
        prop_assert_eq!(wrong.len(), 1, "{:?}", mutation);
        let ArgumentError { name, detail, .. } = &wrong[0];
        let (own, rest) = match mutation.place.find(['.', '[']) {
            Some(end) => mutation.place.split_at(end),
            None => (&*mutation.place, ""),
        };
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        if own == "unknown_1" {
            prop_assert!(name == own && detail.starts_with("is no argument"), "{detail}");
        } else if own.is_empty() {
            prop_assert_eq!(&mutation.words, &format!("missing field `{name}`"));
            prop_assert_eq!(&**detail, "is missing");
        } else {
            prop_assert_eq!(name, own);
            let place = if rest.is_empty() { String::new() } else { format!(" (at {rest})") };
            prop_assert!(detail.ends_with(&place), "{detail} {place}");
            prop_assert_eq!(detail.contains(" (at "), !rest.is_empty());
            prop_assert!(detail.contains(&mutation.words), "{detail} {:?}", mutation);
        }
    }

    #[test]
    fn forms_and_json_agree((shape, json) in case(object(flat()))) {
        let Shape::Object(fields) = &shape else { panic!() };
        if let Some(form) = form_of(fields, &json) {
            let found = read(&given(FORM, &form), &shape);
            prop_assert_eq!(&found, &read(&given(JSON, &json.to_string()), &shape), "{}", form);
            prop_assert!(found.is_ok());
        }
    }
}
