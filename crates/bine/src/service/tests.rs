//! Tests of the arguments of calls.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::call_arguments::{CallArguments, ServiceArguments};
use super::check_call;
use crate::Text;
use crate::store::{RowId, Time};
use crate::wire::{self, Bytes, Limits};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Parcel {
    name: String,
    weights: Vec<i64>,
    inner: Option<Box<Self>>,
    state: State,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum State {
    Packed,
    Sent { at: Time, by: Text },
    Lost(Option<u64>),
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Packed),
        any::<(i64, String)>()
            .prop_map(|(at, by)| State::Sent { at: Time(at), by: by.as_str().into() }),
        any::<Option<u64>>().prop_map(State::Lost),
    ]
}

fn parcel() -> impl Strategy<Value = Parcel> {
    let flat = (any::<(String, Vec<i64>)>(), state());
    let flat = flat
        .prop_map(|((name, weights), state)| Parcel { name, weights, inner: None, state })
        .boxed();
    (flat.clone(), prop::option::of(flat))
        .prop_map(|(parcel, inner)| Parcel { inner: inner.map(Box::new), ..parcel })
}

type Sent = (i64, u64, Option<i128>, Time, Bytes, RowId, bool, char, Parcel, BTreeMap<i64, Text>);

const NAMES: [(&str, &str); 10] = [
    ("signed", ""),
    ("unsigned", ""),
    ("perhaps", ""),
    ("moment", ""),
    ("bytes", ""),
    ("id", ""),
    ("yes", ""),
    ("letter", ""),
    ("parcel", ""),
    ("map", ""),
];

fn sent() -> impl Strategy<Value = Sent> {
    let plain = any::<(i64, u64, Option<i128>, i64, Vec<u8>, u128, bool, char)>();
    let map = prop::collection::btree_map(any::<i64>(), any::<String>(), 0..3);
    (plain, parcel(), map).prop_map(|(plain, parcel, map)| {
        let (signed, unsigned, perhaps, moment, bytes, id, yes, letter) = plain;
        let map = map.into_iter().map(|(key, text)| (key, text.as_str().into()));
        let (moment, bytes, id) = (Time(moment), Bytes(bytes), RowId::from_number(id));
        (signed, unsigned, perhaps, moment, bytes, id, yes, letter, parcel, map.collect())
    })
}

/// The arguments as a JSON object.
fn object(sent: &Sent) -> Vec<u8> {
    let mut text = b"{".to_vec();
    let mut names = NAMES.iter();
    let mut put = |value: Vec<u8>| {
        let comma = if text.len() > 1 { "," } else { "" };
        text.extend_from_slice(format!("{comma}\"{}\":", names.next().unwrap().0).as_bytes());
        text.extend_from_slice(&value);
    };
    put(wire::to_json(&sent.0).unwrap());
    put(wire::to_json(&sent.1).unwrap());
    put(wire::to_json(&sent.2).unwrap());
    put(wire::to_json(&sent.3).unwrap());
    put(wire::to_json(&sent.4).unwrap());
    put(wire::to_json(&sent.5).unwrap());
    put(wire::to_json(&sent.6).unwrap());
    put(wire::to_json(&sent.7).unwrap());
    put(wire::to_json(&sent.8).unwrap());
    put(wire::to_json(&sent.9).unwrap());
    text.push(b'}');
    text
}

proptest! {
    #[test]
    fn arguments_and_answers_round_trip(sent in sent()) {
        let given = CallArguments::in_content("application/json", &object(&sent)).unwrap();
        let taken = Sent::take(&given, &NAMES).unwrap();
        prop_assert_eq!(&taken, &sent);
        let answer = wire::read(&wire::to_json(&taken).unwrap(), &Limits::default()).unwrap();
        prop_assert_eq!(wire::from_value::<Sent>(&answer).unwrap(), sent);
    }

    #[test]
    fn form_texts_arrive_unchanged(texts: Vec<String>, whole: i64, small: Option<u8>) {
        let encode = |text: &str| {
            let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            bytes.concat()
        };
        let small_text = small.map_or(String::new(), |small| small.to_string());
        let mut form = format!("whole={whole}&small={small_text}&text={}", encode("a=&+b"));
        for text in &texts {
            form.extend(["&texts=", &encode(text)]);
        }
        let names = ["whole", "small", "text", "texts"].map(|name| (name, ""));
        let given = CallArguments::in_query(&form).unwrap();
        let taken = <(i64, Option<u8>, Text, Vec<String>)>::take(&given, &names);
        prop_assert_eq!(taken, Ok((whole, small, "a=&+b".into(), texts)));
    }

    #[test]
    fn accepts_or_rejects_any_content(kind: u8, bytes: Vec<u8>, parts in prop::collection::vec("[{}\\[\\]\":,&=%0-9a-z]{0,9}", 0..9)) {
        check_call(kind, &bytes);
        check_call(kind, parts.concat().as_bytes());
    }
}

#[track_caller]
fn check<A: ServiceArguments + std::fmt::Debug>(kind: &str, content: &str, expected: &str) {
    let names = [("state", ""), ("more", "")];
    let told = match CallArguments::in_content(kind, content.as_bytes()) {
        Ok(given) => match A::take(&given, &names) {
            Ok(taken) => format!("{taken:?}"),
            Err(wrong) => {
                super::ArgumentError::sentence(&wrong, &crate::languages::VisitorWords::ENGLISH)
            }
        },
        Err(unread) => format!("{unread:?}"),
    };
    assert_eq!(told, expected, "{content}");
}

#[test]
fn reports_wrong_arguments_by_name() {
    let json = "application/json";
    check::<(State,)>(json, r#"{"state": {"Lost": 7}}"#, "(Lost(Some(7)),)");
    check::<(State, Option<u8>)>(json, r#"{"state": "Packed", "more": null}"#, "(Packed, None)");
    check::<(State,)>(
        json,
        r#"{"state": {"Lost": "x"}}"#,
        "`state` is not what is expected: invalid type: string \"x\", expected u64 (at Lost)",
    );
    check::<(State,)>(json, "{}", "`state` is missing");
    check::<(State,)>(
        json,
        r#"{"state": "Packed", "__proto__": {}}"#,
        "Bad(\"the arguments: the key `__proto__` is refused (at line 1 column 31)\")",
    );
    check::<(State,)>(
        json,
        r#"{"state": "Packed", "state": "Packed"}"#,
        "Bad(\"the arguments: the key `state` is there twice (at line 1 column 27)\")",
    );
    let form = "application/x-www-form-urlencoded";
    check::<(State, Vec<u8>)>(form, "state=Packed&more=1&more=2", "(Packed, [1, 2])");
    check::<(Time, bool)>(form, "state=2026-11-21T09:30:00Z", "(Time(1795253400000000), false)");
    check::<(Parcel,)>(form, "state=a", "`state` cannot come from a form: send it as JSON");
    check::<(State,)>(
        form,
        "state=Broken",
        "`state` is not what is expected: unknown variant `Broken`, expected one of `Packed`, `Sent`, `Lost`",
    );
    check::<(char, u8)>(
        form,
        "state=ab&more=-1",
        "`state` must be one character; `more` must be a whole number from 0 to 255, not `-1`",
    );
    check::<(State,)>(
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"state\"; filename=\"a\"\r\n\r\n\r\n--x--",
        "Bad(\"`state` is a file: a page takes it, as `Upload`\")",
    );
    check::<(State,)>("text/plain", "x", "Unsupported");
}

/// Regression: a browser sends nothing for a form whose only field is an unchecked checkbox, and the
/// server read no content as no JSON, where an absent truth value is an error.
#[test]
fn a_form_without_fields_has_unchecked_checkboxes_only() {
    let form = "application/x-www-form-urlencoded";
    check::<(bool, Vec<u8>)>(form, "", "(false, [])");
    check::<(bool,)>("application/json", "", "`state` is missing");
}

#[test]
fn lists_few_unknown_names_and_counts_the_rest() {
    // Regression: the server compared each unknown name with all names, which took minutes for
    // thousands, and listed them all.
    let long = "x".repeat(50_000);
    let names = (0..9999).map(|number| format!("\"n{number:05}\":1,"));
    let json = format!("{{{}\"{long}\":1}}", names.collect::<String>());
    let names = (0..900).map(|number| format!("n{number}=1&n{number}=2&"));
    let form = format!("{long}=1&{}", names.take(400).collect::<String>());
    for (kind, content, others) in
        [("application/json", json, 9990), ("application/x-www-form-urlencoded", form, 391)]
    {
        let given = CallArguments::in_content(kind, content.as_bytes()).unwrap();
        let wrong = <(Option<u8>,)>::take(&given, &[("more", "")]).unwrap_err();
        assert_eq!(wrong.len(), 10);
        assert!(wrong.iter().all(|wrong| wrong.name.len() <= 42), "{wrong:?}");
        let told = format!("is no argument of this service, and {others} others are none");
        assert_eq!(&*wrong[9].detail, told);
    }
}

#[test]
fn rejects_forms_with_too_many_fields() {
    let form = format!("{}more=1", "state=1&".repeat(1000));
    check::<(Vec<u8>, Option<u8>)>(
        "application/x-www-form-urlencoded",
        &form,
        "Bad(\"the form has more than 1000 fields: send fewer, or JSON\")",
    );
    assert!(CallArguments::in_query(&form).is_err());
    assert!(CallArguments::in_query(&form["state=1&".len()..]).is_ok());
}
