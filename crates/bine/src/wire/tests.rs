//! Tests that values convert to JSON and back unchanged, and that invalid ones are rejected with a
//! clear error.

use std::collections::BTreeMap;
use std::fmt;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::Text;
use crate::store::{Id, RowId, Time};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Rich {
    short: i8,
    signed: i64,
    unsigned: u64,
    huge: (u128, i128),
    real: f64,
    half: f32,
    yes: bool,
    letter: char,
    text: Text,
    moment: Time,
    id: Id<Self>,
    bytes: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<i64>,
    nullable: Option<Box<Self>>,
    by_number: BTreeMap<i64, Shape>,
    by_huge: BTreeMap<u128, bool>,
    by_word: BTreeMap<Word, Option<char>>,
    by_yes: BTreeMap<bool, Newtype>,
    shapes: Vec<Shape>,
    told: Result<Unit, String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Newtype(u64);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    WideOpen,
    Shut,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i64, Option<u64>),
    Named { name: String, numbers: Vec<i64> },
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Point),
        real().prop_map(Shape::Circle),
        any::<(i64, Option<u64>)>().prop_map(|(from, to)| Shape::Line(from, to)),
        any::<(String, Vec<i64>)>().prop_map(|(name, numbers)| Shape::Named { name, numbers }),
    ]
}

/// Any finite number.
fn real() -> impl Strategy<Value = f64> {
    any::<u64>()
        .prop_map(|bits| Some(f64::from_bits(bits)).filter(|f| f.is_finite()).unwrap_or(-0.0))
}

fn half() -> impl Strategy<Value = f32> {
    any::<u32>()
        .prop_map(|bits| Some(f32::from_bits(bits)).filter(|f| f.is_finite()).unwrap_or(-0.0))
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![Just(Word::WideOpen), Just(Word::Shut)]
}

fn rich() -> impl Strategy<Value = Rich> {
    (flat(), option::of(flat()))
        .prop_map(|(rich, inner)| Rich { nullable: inner.map(Box::new), ..rich })
}

/// A value without nested values.
fn flat() -> impl Strategy<Value = Rich> {
    let scalars = (any::<(i8, i64, u64, (u128, i128))>(), real(), half(), any::<(bool, char)>());
    let texts = any::<(String, i64, u128, Vec<u8>, Option<i64>)>();
    let maps = (
        btree_map(any::<i64>(), shape(), 0..3),
        btree_map(any::<u128>(), any::<bool>(), 0..3),
        btree_map(word(), any::<Option<char>>(), 0..3),
        btree_map(any::<bool>(), any::<u64>().prop_map(Newtype), 0..3),
    );
    let rest = (vec(shape(), 0..4), any::<Result<(), String>>());
    (scalars, texts, maps, rest).prop_map(|(scalars, texts, maps, rest)| Rich {
        short: scalars.0.0,
        signed: scalars.0.1,
        unsigned: scalars.0.2,
        huge: scalars.0.3,
        real: scalars.1,
        half: scalars.2,
        yes: scalars.3.0,
        letter: scalars.3.1,
        text: texts.0.into(),
        moment: Time(texts.1),
        id: Id::of(RowId::from_number(texts.2)),
        bytes: Bytes(texts.3),
        absent: texts.4,
        nullable: None,
        by_number: maps.0,
        by_huge: maps.1,
        by_word: maps.2,
        by_yes: maps.3,
        shapes: rest.0,
        told: rest.1.map(|()| Unit),
    })
}

/// Checks both directions.
fn check<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: &T, text: &str) {
    assert_eq!(String::from_utf8(to_json(value).unwrap()).unwrap(), text);
    assert_eq!(taken::<T>(text).as_ref(), Ok(value));
}

fn taken<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = read(text.as_bytes(), &Limits::default()).map_err(|fault| fault.to_string())?;
    from_value(&value).map_err(|fault| fault.to_string())
}

fn refused<T: DeserializeOwned + fmt::Debug>(text: &str, told: &str) {
    assert_eq!(taken::<T>(text).unwrap_err(), told, "{text}");
}

proptest! {
    #[test]
    fn values_round_trip_exactly(rich in rich()) {
        let text = to_json(&rich).unwrap();
        let value = read(&text, &Limits { bytes: usize::MAX, ..Limits::default() }).unwrap();
        prop_assert_eq!(from_value::<Rich>(&value), Ok(rich));
    }

    #[test]
    fn writes_json_that_serde_json_reads(rich in rich()) {
        let text = to_json(&rich).unwrap();
        let other: Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(read(&text, &Limits::default()), Ok(other));
    }

    #[test]
    fn rejects_truncated_text(rich in rich()) {
        let text = to_json(&rich).unwrap();
        for end in (0..text.len()).step_by(1 + text.len() / 100) {
            prop_assert!(read(&text[..end], &Limits::default()).is_err());
        }
    }

    #[test]
    fn any_bytes_are_rejected_or_round_trip(
        bytes in "[\\[\\]{}\",:0-9eE.\\-+\\\\u tfnaed_]{0,60}", any: Vec<u8>
    ) {
        check_wire(bytes.as_bytes());
        check_wire(&any);
    }
}

#[test]
fn writes_each_kind_of_value() {
    check(
        &[9_007_199_254_740_991_i64, -9_007_199_254_740_991],
        "[9007199254740991,-9007199254740991]",
    );
    check(&[9_007_199_254_740_992, i64::MIN], "[\"9007199254740992\",\"-9223372036854775808\"]");
    check(&u128::MAX, "\"340282366920938463463374607431768211455\"");
    check(&BTreeMap::from([(u64::MAX, 0.1)]), "{\"18446744073709551615\":0.1}");
    check(&(Some(1), None::<u8>, ()), "[1,null,null]");
    check(&0.1_f32, "0.1");
    // Its shortest digits, parsed as 64 bits, are exactly between two numbers of 32 bits.
    check(&f32::from_bits(0x15ae_43fd), "7.038530691851209e-26");
    check(&Bytes::from(&b"hops"[..]), "\"aG9wcw==\"");
    check(&Time(1_795_253_400_000_001), "\"2026-11-21T09:30:00.000001Z\"");
    check(&vec![Word::WideOpen, Word::Shut], "[\"wide-open\",\"shut\"]");
    check(&Shape::Line(-1, Some(2)), "{\"Line\":[-1,2]}");
    let named = Shape::Named { name: "a\"\u{1f33f}".to_owned(), numbers: vec![] };
    check(&named, "{\"Named\":{\"name\":\"a\\\"\u{1f33f}\",\"numbers\":[]}}");
}

#[test]
fn reads_whole_numbers_from_digits_and_numbers() {
    assert_eq!(taken("[\"7\",\"-7\",\"0\"]"), Ok((7_u8, -7_i8, 0_u128)));
    assert_eq!(taken("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(taken::<f64>("18446744073709551616"), Ok(18_446_744_073_709_551_616.0));
    // A number that may have been rounded in transit is rejected.
    assert!(taken::<u128>("18446744073709551616").is_err());
    for digits in ["", "-", "07", "-07", "+7", "-0", "7.0", "7 ", "0x7", "\u{664}"] {
        assert!(taken::<i64>(&format!("\"{digits}\"")).is_err(), "{digits}");
    }
}

#[test]
fn reports_mismatch_with_position() {
    refused::<Vec<BTreeMap<String, u8>>>(
        "[{}, {\"count\": 300}]",
        "invalid value: integer `300`, expected u8 (at [1].count)",
    );
    refused::<Shape>(
        "{\"Named\": {\"name\": \"\", \"numbers\": [1, \"a\"]}}",
        "invalid type: string \"a\", expected i64 (at Named.numbers[1])",
    );
    refused::<Shape>(
        "{\"Circle\": 1, \"Point\": null}",
        "an enum is a string, or an object of one key: the name of what it is",
    );
    refused::<Shape>("\"Circle\"", "`Circle` holds something: {\"Circle\": ..}");
    refused::<Shape>("{\"Point\": 1}", "`Point` holds nothing: \"Point\"");
    refused::<(u8, u8)>("[1, 2, 3]", "invalid length 3, expected 2 of them");
    refused::<Bytes>(
        "\"YQ\"",
        "invalid value: string \"YQ\", expected bytes in base64, like \"aG9wcw==\"",
    );
    refused::<Time>("\"today\"", "a moment is written in UTC, like 2026-11-21T09:30:00Z");
    refused::<f32>("1e300", "invalid value: a number too large for 32 bits, expected f32");
    refused::<BTreeMap<u8, u8>>("{\"x\": 1}", "invalid type: string \"x\", expected u8 (at x)");
}

#[test]
fn bounds_quoted_data_in_errors() {
    let long = format!("\"{}\"", "\u{e9}".repeat(10_000));
    assert!(taken::<u8>(&long).unwrap_err().len() < 300);
    assert!(taken::<BTreeMap<String, u8>>(&format!("{{{long}: -1}}")).unwrap_err().len() < 300);
}

#[test]
fn rejects_prototype_keys_in_both_directions() {
    for key in RESERVED {
        let text = format!("[{{\"a\": {{\"{key}\": 1}}}}]");
        let told = taken::<Value>(&text).unwrap_err();
        assert!(
            told.starts_with(&format!("the key `{key}` is refused (at line 1 column ")),
            "{told}"
        );
        let map = BTreeMap::from([("a", BTreeMap::from([(key, 1)]))]);
        let told = to_json(&map).unwrap_err().to_string();
        assert_eq!(told, format!("the key `{key}` is refused by whoever reads it (at a)"));
    }
    // An escaped spelling of the same key.
    assert!(taken::<Value>("{\"__proto\\u005f_\": 1}").is_err());
}

#[test]
fn rejects_duplicate_keys() {
    refused::<Value>(
        "{\"a\": 1,\n \"\\u0061\": 2}",
        "the key `a` is there twice (at line 2 column 9)",
    );
    assert!(taken::<Value>("[{\"a\": 1}, {\"a\": 1}]").is_ok());
}

#[test]
fn enforces_limits_of_text() {
    let limits = Limits { bytes: 20, depth: 3, keys: 2, values: 5 };
    let told = |text: &str| read(text.as_bytes(), &limits).map_err(|fault| fault.to_string());
    assert!(told("{\"a\":{\"b\":[]}}").is_ok());
    assert_eq!(told("[[[[]]]]").unwrap_err(), "more than 3 levels (at line 1 column 5)");
    assert_eq!(
        told("{\"a\":1,\"b\":1,\"c\":1}").unwrap_err(),
        "more than 2 keys (at line 1 column 16)"
    );
    // Regression: a million values took dozens of megabytes.
    assert_eq!(told("[1,{\"a\":1},[1]]").unwrap().to_string(), "[1,{\"a\":1},[1]]");
    assert_eq!(told("[1,2,3,4,5,6]").unwrap_err(), "more than 5 values (at line 1 column 13)");
    assert_eq!(told("\"2345678901234567890\"").unwrap_err(), "more than 20 bytes of JSON");
}

#[test]
fn bounds_depth_of_value() {
    for (depth, is_good) in [(128, true), (129, false), (500_000, false)] {
        let text = [vec_of(b'[', depth), vec_of(b']', depth)].concat();
        assert_eq!(read(&text, &Limits::default()).is_ok(), is_good, "{depth}");
        let text = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
        assert_eq!(
            read(text.as_bytes(), &Limits { bytes: usize::MAX, ..Limits::default() }).is_ok(),
            is_good,
            "{depth}"
        );
    }
}

fn vec_of(byte: u8, count: usize) -> Vec<u8> {
    std::iter::repeat_n(byte, count).collect()
}

#[test]
fn rejects_values_that_json_cannot_represent() {
    let told = |fault: Fault| fault.to_string();
    let numbers = BTreeMap::from([("readings", vec![1.0, f64::NAN])]);
    assert_eq!(
        to_json(&numbers).map_err(told),
        Err("NaN is no number of JSON (at readings[1])".to_owned())
    );
    assert!(to_json(&f32::NEG_INFINITY).is_err());
    assert!(to_json(&BTreeMap::from([((1, 2), 3)])).is_err());
}

#[test]
fn rejects_large_numbers_in_untagged_enums() {
    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Number { is: u64 },
    }
    check(&Tagged::Number { is: 7 }, "{\"kind\":\"Number\",\"is\":7}");
    let text = to_json(&Tagged::Number { is: u64::MAX }).unwrap();
    assert!(taken::<Tagged>(std::str::from_utf8(&text).unwrap()).is_err());
}
