//! The arguments of a script's service, read by the shape that the compiler derives from their type.
//!
//! A shape is a seed of serde. JSON, forms and queries pass through the deserializers of Rust
//! services, so both languages accept the same texts and report a mistake in the same words. As in
//! Rust, each wrong argument is reported once, and the reason has the place of a mistake in a nested
//! value: `items` .. `(at [2].name)`.

use std::fmt::{self, Display};

use bine_script::Value;
use bine_tsx::{Field, Literal, Shape};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, de};

use super::uploads::is_upload;
use crate::from_text::FromText;
use crate::service::{ArgumentError, CallArguments};
use crate::text::shortened;

/// Reads the argument of a service, whose `shape` is an object. Fields have the order of the shape;
/// those that are absent or `null` are left out, as are files.
///
/// `open` decrypts a sealed value, by the name of its argument.
///
/// # Errors
///
/// All wrong arguments: those that the service does not have, then the others in order.
pub(super) fn read(
    given: &CallArguments,
    shape: &Shape,
    open: impl Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Value, Vec<ArgumentError>> {
    let fields: &[Field] = match shape {
        Shape::Object(fields) => fields,
        // The compiler accepts no other type.
        _ => &[],
    };
    let source = if given.texts().is_some() { ArgumentSource::Text } else { ArgumentSource::Json };
    let mut wrong = given.unknown(&fields.iter().map(|field| &*field.name));
    let mut entries = Vec::with_capacity(fields.len());
    for field in fields.iter().filter(|field| !is_upload(field)) {
        let read = match &field.shape {
            Shape::Sealed(inner) => read_sealed(given, field, inner, source, &open),
            _ => given.argument(&field.name, FieldReader { field, source }),
        };
        match read {
            Ok(Some(value)) => entries.push((field.name.clone(), value)),
            Ok(None) => {}
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(Value::Object(entries)) } else { Err(wrong) }
}

/// Reads a value that this server has sealed. It was valid then, but the program may have changed.
fn read_sealed(
    given: &CallArguments,
    field: &Field,
    inner: &Shape,
    source: ArgumentSource,
    open: impl Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Option<Value>, ArgumentError> {
    let refused = || ArgumentError::new(&field.name, NOT_SEALED.to_owned());
    let text =
        Field { shape: Shape::String, name: field.name.clone(), is_optional: field.is_optional };
    let text = given.argument(&field.name, FieldReader { field: &text, source })?;
    let Some(Value::Text(text)) = text else { return Ok(None) };
    let content = open(&field.name, &text).ok_or_else(refused)?;
    let mut json = serde_json::Deserializer::from_slice(&content);
    let reader = ShapeReader { shape: inner, source: ArgumentSource::Json };
    reader.deserialize(&mut json).map(Some).map_err(|_| refused())
}

/// What a visitor reads about an argument that is not sealed for it.
const NOT_SEALED: &str = "is not a value that this server has sealed for you: load the page again";

/// Where arguments are from.
#[derive(Clone, Copy)]
enum ArgumentSource {
    Json,
    /// A form or a query, in which a number is a text.
    Text,
}

/// Reads the value of a field; `None`: the field is absent.
#[derive(Clone, Copy)]
struct FieldReader<'s> {
    field: &'s Field,
    source: ArgumentSource,
}

impl<'de> DeserializeSeed<'de> for FieldReader<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        let reader = ShapeReader { shape: &self.field.shape, source: self.source };
        if self.field.is_optional {
            from.deserialize_option(OptionalVisitor(reader))
        } else {
            reader.deserialize(from).map(Some)
        }
    }
}

struct OptionalVisitor<'s>(ShapeReader<'s>);

impl<'de> Visitor<'de> for OptionalVisitor<'_> {
    type Value = Option<Value>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("option")
    }

    fn visit_none<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        self.0.deserialize(from).map(Some)
    }
}

/// Reads a value that has a shape.
#[derive(Clone, Copy)]
struct ShapeReader<'s> {
    shape: &'s Shape,
    source: ArgumentSource,
}

impl<'de> DeserializeSeed<'de> for ShapeReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        let source = self.source;
        match self.shape {
            Shape::String => String::deserialize(from).map(Value::Text),
            Shape::Number => finite(f64::deserialize(from)?),
            Shape::Boolean => bool::deserialize(from).map(Value::Bool),
            Shape::OneOf(constants) => {
                let visitor = ConstantVisitor { constants, source };
                let all = |is_kind: fn(&Literal) -> bool| constants.iter().all(is_kind);
                // A deserializer of forms reads a text as the kind that is asked for.
                if all(|constant| matches!(constant, Literal::Number(_))) {
                    from.deserialize_f64(visitor)
                } else if all(|constant| matches!(constant, Literal::Boolean(_))) {
                    from.deserialize_bool(visitor)
                } else {
                    from.deserialize_any(visitor)
                }
            }
            Shape::Array(item) => {
                from.deserialize_seq(ArrayVisitor(ShapeReader { shape: item, source }))
            }
            Shape::Object(fields) => from.deserialize_map(ObjectVisitor { fields, source }),
            // No other value has one: the compiler rejects it.
            Shape::Upload => Err(D::Error::custom("a file comes with a form only")),
            // Only an argument itself has one: the compiler rejects it elsewhere.
            Shape::Sealed(_) => Err(D::Error::custom("a sealed value is an argument")),
        }
    }
}

/// A text can have a number that is not finite, which neither JSON nor a script's value has.
fn finite<E: Error>(number: f64) -> Result<Value, E> {
    if number.is_finite() {
        Ok(Value::Number(number))
    } else {
        Err(E::invalid_value(Unexpected::Float(number), &"a finite number"))
    }
}

/// Accepts one of these constants.
#[derive(Clone, Copy)]
struct ConstantVisitor<'s> {
    constants: &'s [Literal],
    source: ArgumentSource,
}

impl ConstantVisitor<'_> {
    /// The value of `given`, if it is one of the constants.
    fn find<E: Error>(self, given: &Literal, seen: Unexpected<'_>) -> Result<Value, E> {
        if self.constants.contains(given) {
            return Ok(value_of(given));
        }
        let same_kind =
            |own: &Literal| std::mem::discriminant(own) == std::mem::discriminant(given);
        Err(if self.constants.iter().any(same_kind) {
            unknown_variant(&text_of(given), self)
        } else {
            E::invalid_type(seen, &self)
        })
    }

    fn number<E: Error>(self, number: f64) -> Result<Value, E> {
        self.find(&Literal::Number(number), Unexpected::Float(number))
    }
}

impl Visitor<'_> for ConstantVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(to, self.constants.iter().map(text_of))
    }

    fn visit_bool<E: Error>(self, given: bool) -> Result<Value, E> {
        self.find(&Literal::Boolean(given), Unexpected::Bool(given))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        self.number(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        self.number(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        self.number(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let means = |constant: &&Literal| match constant {
            Literal::String(own) => own == text,
            Literal::Number(own) => f64::from_text(text) == Ok(*own),
            Literal::Boolean(own) => bool::from_text(text) == Ok(*own),
        };
        match self.source {
            ArgumentSource::Json => {
                self.find(&Literal::String(text.to_owned()), Unexpected::Str(text))
            }
            ArgumentSource::Text => match self.constants.iter().find(means) {
                Some(constant) => Ok(value_of(constant)),
                None => Err(unknown_variant(text, self)),
            },
        }
    }
}

fn value_of(constant: &Literal) -> Value {
    match constant {
        Literal::String(text) => Value::Text(text.clone()),
        Literal::Number(number) => Value::Number(*number),
        Literal::Boolean(given) => Value::Bool(*given),
    }
}

fn text_of(constant: &Literal) -> String {
    match constant {
        Literal::String(text) => text.clone(),
        Literal::Number(number) => number.to_string(),
        Literal::Boolean(given) => given.to_string(),
    }
}

/// The error of serde for an enum, which takes only names that are known at compile time.
fn unknown_variant<E: Error>(given: &str, expected: ConstantVisitor<'_>) -> E {
    let given = shortened(given);
    let expected: &dyn de::Expected = &expected;
    E::custom(format_args!("unknown variant `{given}`, expected {expected}"))
}

/// Writes names as serde does: `a`, "`a` or `b`", "one of `a`, `b`, `c`".
fn write_names(
    to: &mut fmt::Formatter<'_>,
    names: impl ExactSizeIterator<Item = impl Display>,
) -> fmt::Result {
    let count = names.len();
    let between = if count == 2 { " or " } else { ", " };
    to.write_str(if count > 2 { "one of " } else { "" })?;
    for (index, name) in names.enumerate() {
        to.write_str(if index > 0 { between } else { "" })?;
        write!(to, "`{name}`")?;
    }
    Ok(())
}

struct ArrayVisitor<'s>(ShapeReader<'s>);

impl<'de> Visitor<'de> for ArrayVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.0)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
}

/// Accepts an object with exactly these fields.
struct ObjectVisitor<'s> {
    fields: &'s [Field],
    source: ArgumentSource,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { fields, source } = self;
        let mut values = vec![None; fields.len()];
        while let Some(index) = members.next_key_seed(KeyReader(fields))? {
            let field = &fields[index];
            values[index] = members.next_value_seed(FieldReader { field, source })?;
        }
        let mut entries = Vec::with_capacity(fields.len());
        for (field, value) in fields.iter().zip(values) {
            match value {
                Some(value) => entries.push((field.name.clone(), value)),
                None if field.is_optional => {}
                None => {
                    return Err(A::Error::custom(format_args!("missing field `{}`", field.name)));
                }
            }
        }
        Ok(Value::Object(entries))
    }
}

/// Reads a key as the index of the field that it names.
#[derive(Clone, Copy)]
struct KeyReader<'s>(&'s [Field]);

impl<'de> DeserializeSeed<'de> for KeyReader<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<usize, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyReader<'_> {
    type Value = usize;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(to, self.0.iter().map(|field| &field.name))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        self.0.iter().position(|field| field.name == key).ok_or_else(|| {
            let (key, expected): (_, &dyn de::Expected) = (shortened(key), &self);
            if self.0.is_empty() {
                E::custom(format_args!("unknown field `{key}`, there are no fields"))
            } else {
                E::custom(format_args!("unknown field `{key}`, expected {expected}"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
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
        let module =
            bine_tsx::compile("index.tsx", &source).unwrap_or_else(|all| panic!("{all:?}"));
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
            bine_tsx::compile("index.tsx", source).expect("a module").facts.services[0]
                .argument
                .clone()
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
        told(
            r#"{"name":7,"marks":[]}"#,
            "invalid type: integer `7`, expected a string (at [1].name)",
        );
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
        wrong(
            "{ a: 1 | 2 }",
            JSON,
            r#"{"a":"1"}"#,
            "invalid type: string \"1\", expected `1` or `2`",
        );
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
    fn check_like_rust<T: ServiceArguments + fmt::Debug>(
        annotation: &str,
        kind: &str,
        content: &str,
    ) {
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
}
