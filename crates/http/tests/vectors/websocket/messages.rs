//! Decides what messages in parts mean (chapter 5), and what text is (6).

use super::feed::{check, frame};
use super::sequences;

const TEXT: u8 = 0x81;
const TEXT_BEGINS: u8 = 0x01;
const BINARY_BEGINS: u8 = 0x02;
const GOES_ON: u8 = 0x00;
const ENDS: u8 = 0x80;
const PING: u8 = 0x89;

sequences! {
    text_in_two_parts_is_one: [frame(TEXT_BEGINS, "ab"), frame(ENDS, "cd")] => "text \"abcd\"";
    bytes_in_three_parts_are_one: [frame(BINARY_BEGINS, "a"), frame(GOES_ON, "\0"), frame(ENDS, "c")] => "binary \"a\\x00c\"";
    parts_may_be_empty: [frame(TEXT_BEGINS, ""), frame(GOES_ON, ""), frame(ENDS, "")] => "text \"\"";
    an_empty_part_may_stand_between: [frame(TEXT_BEGINS, "a"), frame(GOES_ON, ""), frame(ENDS, "b")] => "text \"ab\"";
    a_ping_between_parts_comes_first: [frame(TEXT_BEGINS, "a"), frame(PING, "p"), frame(ENDS, "b")] => "ping \"p\"; text \"ab\"";
    pings_may_stand_between_all_parts: [
        frame(TEXT_BEGINS, "a"), frame(PING, "1"), frame(GOES_ON, "b"), frame(PING, "2"), frame(GOES_ON, "c"),
        frame(PING, "3"), frame(PING, "4"), frame(ENDS, "d"),
    ] => "ping \"1\"; ping \"2\"; ping \"3\"; ping \"4\"; text \"abcd\"";
    a_message_after_one_in_parts_is_another: [frame(TEXT_BEGINS, "a"), frame(ENDS, "b"), frame(TEXT, "c")] => "text \"ab\"; text \"c\"";
    two_messages_in_parts_are_two: [
        frame(TEXT_BEGINS, "a"), frame(ENDS, "b"), frame(BINARY_BEGINS, "c"), frame(ENDS, "d"),
    ] => "text \"ab\"; binary \"cd\"";
    a_ping_in_parts_is_refused: [frame(0x09, "a"), frame(ENDS, "b")] => "1002 control frame in fragments";
    a_pong_in_parts_is_refused: [frame(0x0a, "a"), frame(ENDS, "b")] => "1002 control frame in fragments";
    the_end_of_nothing_is_refused: [frame(ENDS, "a")] => "1002 continuation of no message";
    a_part_of_nothing_is_refused: [frame(GOES_ON, "a"), frame(TEXT, "b")] => "1002 continuation of no message";
    a_part_behind_the_last_is_refused: [
        frame(TEXT_BEGINS, "a"), frame(ENDS, "b"), frame(GOES_ON, "c"),
    ] => "text \"ab\"; 1002 continuation of no message";
    a_message_inside_another_is_refused: [frame(TEXT_BEGINS, "a"), frame(TEXT, "b")] => "1002 message inside another";
    parts_of_two_messages_are_not_mixed: [frame(TEXT_BEGINS, "a"), frame(BINARY_BEGINS, "b")] => "1002 message inside another";
    an_unfinished_message_waits: [frame(TEXT_BEGINS, "a"), frame(PING, "")] => "ping \"\" ...";
    parts_of_the_limit_are_taken: [
        frame(BINARY_BEGINS, vec![7; 150_000]), frame(ENDS, vec![7; 50_000]),
    ] => "binary of 200000 from 0x07 to 0x07";
    parts_over_the_limit_are_refused: [
        frame(BINARY_BEGINS, vec![7; 150_000]), frame(ENDS, vec![7; 50_001]),
    ] => "1009 message over its limit";
    twenty_parts_of_twenty_are_taken: [
        frame(TEXT_BEGINS, "a"), frame(GOES_ON, "b").repeat(18), frame(ENDS, "c"),
    ] => "text \"abbbbbbbbbbbbbbbbbbc\"";
    parts_of_nothing_do_not_go_on_forever: [
        frame(TEXT_BEGINS, ""), frame(GOES_ON, "").repeat(20),
    ] => "1008 too many fragments in a message";

    // Text.
    text_is_cut_anywhere: [
        frame(TEXT_BEGINS, b"\xce"), frame(GOES_ON, b"\xba\xe1\xbd"), frame(GOES_ON, b"\xb9\xcf"), frame(ENDS, b"\x83"),
    ] => "text \"\\xce\\xba\\xe1\\xbd\\xb9\\xcf\\x83\"";
    text_that_ends_within_a_letter_is_refused: [frame(TEXT, b"\xce\xba\xe1\xbd")] => "1007 text is not UTF-8";
    text_in_parts_that_ends_within_a_letter_is_refused: [frame(TEXT_BEGINS, b"\xce"), frame(ENDS, b"")] => "1007 text is not UTF-8";
    text_is_refused_before_its_last_part: [
        frame(TEXT_BEGINS, "\u{3ba}"), frame(GOES_ON, b"\xf4\x90"),
    ] => "1007 text is not UTF-8";
    text_is_refused_before_its_frame_ends: [*b"\x81\x88\0\0\0\0\xce\xba\xf4\x90"] => "1007 text is not UTF-8";
    a_letter_that_may_yet_end_waits: [*b"\x81\x88\0\0\0\0\xce\xba\xf4\x8f\xbf"] => "...";
    bytes_need_not_be_text: [frame(BINARY_BEGINS, b"\xff"), frame(ENDS, b"\xc0")] => "binary \"\\xff\\xc0\"";
}

/// Sequences that are text, from the public stress test for UTF-8 decoders: first and last of each length, and the
/// code points that look forbidden and are not.
const TEXTS: [&[u8]; 22] = [
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

/// Sequences that are not.
const NO_TEXTS: [&[u8]; 40] = [
    // Continuations of nothing, and nothing continued.
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
    // Lengths that there are not.
    b"\xf8\x88\x80\x80\x80",
    b"\xfb\xbf\xbf\xbf\xbf",
    b"\xfc\x84\x80\x80\x80\x80",
    b"\xfd\xbf\xbf\xbf\xbf\xbf",
    b"\xfe",
    b"\xff",
    b"\xfe\xfe\xff\xff",
    // Longer than need be.
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
    // Halves of pairs in UTF-16, and beyond the last.
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

/// The text with a part for each of its bytes.
fn in_parts(text: &[u8]) -> Vec<u8> {
    let mut parts = frame(TEXT_BEGINS, "");
    for byte in text {
        parts.extend(frame(GOES_ON, [*byte]));
    }
    parts.extend(frame(ENDS, ""));
    parts
}

#[test]
fn what_is_text_is_taken_in_one_part_and_in_many() {
    for text in TEXTS {
        let expected = format!("text \"{}\"", text.escape_ascii());
        check(&frame(TEXT, text), &expected);
        check(&in_parts(text), &expected);
    }
}

#[test]
fn what_is_no_text_is_refused_in_one_part_and_in_many() {
    for text in NO_TEXTS {
        check(&frame(TEXT, text), "1007 text is not UTF-8");
        check(&in_parts(text), "1007 text is not UTF-8");
    }
}
