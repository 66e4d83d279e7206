//! Vectors for fragmented messages (chapter 5) and for UTF-8 (6).

use super::feed::{check, frame};
use super::sequences;

const TEXT: u8 = 0x81;
const FIRST_TEXT: u8 = 0x01;
const FIRST_BINARY: u8 = 0x02;
const MIDDLE: u8 = 0x00;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

sequences! {
    joins_two_text_fragments: [frame(FIRST_TEXT, "ab"), frame(LAST, "cd")] => "text \"abcd\"";
    joins_three_binary_fragments: [frame(FIRST_BINARY, "a"), frame(MIDDLE, "\0"), frame(LAST, "c")] => "binary \"a\\x00c\"";
    accepts_empty_fragments: [frame(FIRST_TEXT, ""), frame(MIDDLE, ""), frame(LAST, "")] => "text \"\"";
    accepts_empty_fragment_in_the_middle: [frame(FIRST_TEXT, "a"), frame(MIDDLE, ""), frame(LAST, "b")] => "text \"ab\"";
    returns_ping_before_incomplete_message: [frame(FIRST_TEXT, "a"), frame(PING, "p"), frame(LAST, "b")] => "ping \"p\"; text \"ab\"";
    accepts_pings_between_all_fragments: [
        frame(FIRST_TEXT, "a"), frame(PING, "1"), frame(MIDDLE, "b"), frame(PING, "2"), frame(MIDDLE, "c"),
        frame(PING, "3"), frame(PING, "4"), frame(LAST, "d"),
    ] => "ping \"1\"; ping \"2\"; ping \"3\"; ping \"4\"; text \"abcd\"";
    separates_fragmented_and_next_message: [frame(FIRST_TEXT, "a"), frame(LAST, "b"), frame(TEXT, "c")] => "text \"ab\"; text \"c\"";
    separates_two_fragmented_messages: [
        frame(FIRST_TEXT, "a"), frame(LAST, "b"), frame(FIRST_BINARY, "c"), frame(LAST, "d"),
    ] => "text \"ab\"; binary \"cd\"";
    rejects_fragmented_ping: [frame(0x09, "a"), frame(LAST, "b")] => "1002 control frame in fragments";
    rejects_fragmented_pong: [frame(0x0a, "a"), frame(LAST, "b")] => "1002 control frame in fragments";
    rejects_last_fragment_without_message: [frame(LAST, "a")] => "1002 continuation of no message";
    rejects_fragment_without_message: [frame(MIDDLE, "a"), frame(TEXT, "b")] => "1002 continuation of no message";
    rejects_fragment_after_last: [
        frame(FIRST_TEXT, "a"), frame(LAST, "b"), frame(MIDDLE, "c"),
    ] => "text \"ab\"; 1002 continuation of no message";
    rejects_message_inside_message: [frame(FIRST_TEXT, "a"), frame(TEXT, "b")] => "1002 message inside another";
    rejects_interleaved_fragments: [frame(FIRST_TEXT, "a"), frame(FIRST_BINARY, "b")] => "1002 message inside another";
    waits_for_rest_of_message: [frame(FIRST_TEXT, "a"), frame(PING, "")] => "ping \"\" ...";
    accepts_fragments_at_size_limit: [
        frame(FIRST_BINARY, vec![7; 150_000]), frame(LAST, vec![7; 50_000]),
    ] => "binary of 200000 from 0x07 to 0x07";
    rejects_fragments_over_size_limit: [
        frame(FIRST_BINARY, vec![7; 150_000]), frame(LAST, vec![7; 50_001]),
    ] => "1009 message over its limit";
    accepts_fragments_at_count_limit: [
        frame(FIRST_TEXT, "a"), frame(MIDDLE, "b").repeat(18), frame(LAST, "c"),
    ] => "text \"abbbbbbbbbbbbbbbbbbc\"";
    rejects_empty_fragments_over_count_limit: [
        frame(FIRST_TEXT, ""), frame(MIDDLE, "").repeat(20),
    ] => "1008 too many fragments in a message";

    // Text.
    accepts_text_split_within_characters: [
        frame(FIRST_TEXT, b"\xce"), frame(MIDDLE, b"\xba\xe1\xbd"), frame(MIDDLE, b"\xb9\xcf"), frame(LAST, b"\x83"),
    ] => "text \"\\xce\\xba\\xe1\\xbd\\xb9\\xcf\\x83\"";
    rejects_text_with_incomplete_last_character: [frame(TEXT, b"\xce\xba\xe1\xbd")] => "1007 text is not UTF-8";
    rejects_fragmented_text_with_incomplete_last_character: [frame(FIRST_TEXT, b"\xce"), frame(LAST, b"")] => "1007 text is not UTF-8";
    rejects_invalid_text_before_last_fragment: [
        frame(FIRST_TEXT, "\u{3ba}"), frame(MIDDLE, b"\xf4\x90"),
    ] => "1007 text is not UTF-8";
    rejects_invalid_text_before_end_of_frame: [*b"\x81\x88\0\0\0\0\xce\xba\xf4\x90"] => "1007 text is not UTF-8";
    waits_for_rest_of_character: [*b"\x81\x88\0\0\0\0\xce\xba\xf4\x8f\xbf"] => "...";
    accepts_binary_that_is_not_utf8: [frame(FIRST_BINARY, b"\xff"), frame(LAST, b"\xc0")] => "binary \"\\xff\\xc0\"";
}

/// Valid UTF-8 from the public stress test for UTF-8 decoders: the first and last code point of
/// each length, and code points that look forbidden but are allowed.
const VALID_TEXTS: [&[u8]; 22] = [
    b"\x00",
    b"\x7f",
    b"\xc2\x80",
    b"\xdf\xbf",
    b"\xe0\xa0\x80",
    b"\xef\xbf\xbf",
    b"\xf0\x90\x80\x80",
    b"\xf4\x8f\xbf\xbf",
    b"\xed\x9f\xbf",
    b"\xee\x80\x80",
    b"\xef\xbf\xbd",
    b"\xef\xbf\xbe",
    b"\xf0\x9f\xbf\xbe",
    b"\xf0\x9f\xbf\xbf",
    b"\xf0\xaf\xbf\xbe",
    b"\xf1\x8f\xbf\xbf",
    b"\xf3\xbf\xbf\xbf",
    b"\xf3\xbf\xbf\xbe",
    b"\xf4\x8f\xbf\xbe",
    b"\xe2\x82\xac",
    b"\xef\xbb\xbf",
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5",
];

/// Invalid UTF-8.
const INVALID_TEXTS: [&[u8]; 40] = [
    // Unexpected and missing continuation bytes.
    b"\x80",
    b"\xbf",
    b"\x80\xbf",
    b"\x80\xbf\x80\xbf\x80",
    b"\xc2 ",
    b"\xdf ",
    b"\xe0\xa0 ",
    b"\xf0\x90\x80 ",
    b"\xc2",
    b"\xe0\xa0",
    b"\xef\xbf",
    b"\xf0\x90\x80",
    b"\xf4\x8f\xbf",
    b"\xe1\x80\xe2\xf0\x91\x92",
    // Undefined sequence lengths.
    b"\xf8\x88\x80\x80\x80",
    b"\xfb\xbf\xbf\xbf\xbf",
    b"\xfc\x84\x80\x80\x80\x80",
    b"\xfd\xbf\xbf\xbf\xbf\xbf",
    b"\xfe",
    b"\xff",
    b"\xfe\xfe\xff\xff",
    // Overlong encodings.
    b"\xc0\xaf",
    b"\xe0\x80\xaf",
    b"\xf0\x80\x80\xaf",
    b"\xf8\x80\x80\x80\xaf",
    b"\xc1\xbf",
    b"\xe0\x9f\xbf",
    b"\xf0\x8f\xbf\xbf",
    b"\xc0\x80",
    b"\xe0\x80\x80",
    b"\xf0\x80\x80\x80",
    // UTF-16 surrogates, and code points above the last.
    b"\xed\xa0\x80",
    b"\xed\xad\xbf",
    b"\xed\xae\x80",
    b"\xed\xbf\xbf",
    b"\xed\xa0\x80\xed\xb0\x80",
    b"\xed\xaf\xbf\xed\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xf7\xbf\xbf\xbf",
];

/// Fragments the text into one frame per byte.
fn fragmented(text: &[u8]) -> Vec<u8> {
    let mut parts = frame(FIRST_TEXT, "");
    for byte in text {
        parts.extend(frame(MIDDLE, [*byte]));
    }
    parts.extend(frame(LAST, ""));
    parts
}

#[test]
fn accepts_valid_utf8_whole_and_fragmented() {
    for text in VALID_TEXTS {
        let expected = format!("text \"{}\"", text.escape_ascii());
        check(&frame(TEXT, text), &expected);
        check(&fragmented(text), &expected);
    }
}

#[test]
fn rejects_invalid_utf8_whole_and_fragmented() {
    for text in INVALID_TEXTS {
        check(&frame(TEXT, text), "1007 text is not UTF-8");
        check(&fragmented(text), "1007 text is not UTF-8");
    }
}
