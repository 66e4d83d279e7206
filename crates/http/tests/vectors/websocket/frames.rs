//! Decides what single frames mean: chapters 1 to 4, and closing (7).

use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits};

use super::feed::{check, frame};
use super::sequences;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A close frame.
fn close(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    frame(CLOSE, [&code.to_be_bytes(), reason.as_ref()].concat())
}

sequences! {
    // Messages in one frame.
    text_may_be_empty: [frame(TEXT, "")] => "text \"\"";
    text_has_a_length_in_the_second_byte: [frame(TEXT, "*".repeat(125))] => "text of 125 from 0x2a to 0x2a";
    text_has_a_length_of_two_bytes: [frame(TEXT, "*".repeat(126))] => "text of 126 from 0x2a to 0x2a";
    text_has_the_longest_length_of_two_bytes: [frame(TEXT, "*".repeat(65535))] => "text of 65535 from 0x2a to 0x2a";
    text_has_a_length_of_eight_bytes: [frame(TEXT, "*".repeat(65536))] => "text of 65536 from 0x2a to 0x2a";
    bytes_may_be_none: [frame(BINARY, "")] => "binary \"\"";
    bytes_may_be_any: [frame(BINARY, [0xfe, 0x00, 0xff])] => "binary \"\\xfe\\x00\\xff\"";
    bytes_may_be_many: [frame(BINARY, [0xfe; 127])] => "binary of 127 from 0xfe to 0xfe";
    messages_follow_each_other: [frame(TEXT, "a"), frame(BINARY, "b"), frame(TEXT, "c")]
        => "text \"a\"; binary \"b\"; text \"c\"";

    // Pings and pongs.
    a_ping_may_be_empty: [frame(PING, "")] => "ping \"\"";
    a_ping_carries_any_bytes: [frame(PING, [0, 0xff, 0xfe])] => "ping \"\\x00\\xff\\xfe\"";
    a_ping_carries_125_bytes: [frame(PING, [0xfe; 125])] => "ping of 125 from 0xfe to 0xfe";
    a_ping_of_126_bytes_is_refused: [frame(PING, [0xfe; 126])] => "1002 control frame over 125 bytes";
    a_pong_nobody_asked_for_is_no_fault: [frame(PONG, ""), frame(PONG, "a")] => "pong \"\"; pong \"a\"";
    ten_pings_are_ten: [frame(PING, "a").repeat(10)]
        => "ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"";

    // Reserved bits and opcodes.
    the_first_reserved_bit_is_refused: [frame(TEXT | 0x40, "a")] => "1002 reserved bit in a frame";
    the_second_reserved_bit_is_refused: [frame(TEXT, "a"), frame(TEXT | 0x20, "b")] => "text \"a\"; 1002 reserved bit in a frame";
    the_third_reserved_bit_is_refused: [frame(BINARY | 0x10, "a")] => "1002 reserved bit in a frame";
    a_reserved_bit_of_a_ping_is_refused: [frame(PING | 0x50, "a")] => "1002 reserved bit in a frame";
    a_reserved_bit_of_a_close_is_refused: [frame(CLOSE | 0x70, "")] => "1002 reserved bit in a frame";

    // Masks and lengths.
    a_frame_without_mask_is_refused: [*b"\x81\x01a"] => "1002 frame masked the wrong way";
    a_long_form_of_a_short_length_is_refused: [*b"\x81\xfe\x00\x7d"] => "1002 length of a frame not in its shortest form";
    a_longer_form_of_a_long_length_is_refused: [*b"\x82\xff\0\0\0\0\0\0\xff\xff"] => "1002 length of a frame not in its shortest form";
    a_length_with_its_sign_is_refused: [*b"\x82\xff\x80\0\0\0\0\x01\0\0"] => "1002 length of a frame not in its shortest form";
    a_length_over_the_limit_is_refused_before_its_content: [*b"\x82\xff\0\0\0\0\0\x03\x0d\x41"] => "1009 message over its limit";
    the_longest_length_is_refused_before_its_content: [*b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"] => "1009 message over its limit";
    a_message_of_the_limit_is_taken: [frame(BINARY, vec![7; 200_000])] => "binary of 200000 from 0x07 to 0x07";

    // Closing.
    a_close_may_say_nothing: [frame(CLOSE, "")] => "close";
    a_close_says_why: [close(1000, "bye")] => "close 1000 \"bye\"";
    a_close_gives_a_long_reason: [close(1001, "*".repeat(123))] => "close 1001 of 123 from 0x2a to 0x2a";
    a_reason_of_124_bytes_is_refused: [close(1000, "*".repeat(124))] => "1002 control frame over 125 bytes";
    a_close_of_one_byte_is_refused: [frame(CLOSE, "a")] => "1002 close frame of one byte";
    a_reason_that_is_no_text_is_refused: [close(1000, b"\xce\xba\xe1\xbd")] => "1007 text is not UTF-8";
    behind_a_close_nothing_is_heard: [close(1000, ""), frame(TEXT, "a"), frame(PING, ""), close(1002, "")] => "close 1000 \"\"";
    a_close_in_parts_is_refused: [frame(0x08, "")] => "1002 control frame in fragments";
    a_close_ends_a_message_in_parts: [frame(0x01, "a"), close(1000, "")] => "close 1000 \"\"";

    // What has not all come.
    half_a_header_waits: [[0x81, 0xfe, 0x01]] => "...";
    half_a_ping_waits: [[0x89, 0x82, 1, 2, 3, 4, 5]] => "...";
    half_a_text_waits: [*b"\x81\x83\0\0\0\0ab"] => "...";
}

#[test]
fn unknown_opcodes_are_refused() {
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        let bytes = [frame(TEXT, "a"), frame(0x80 | opcode, "")].concat();
        check(&bytes, "text \"a\"; 1002 unknown opcode");
    }
}

#[test]
fn codes_that_mean_something_are_taken_and_others_refused() {
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        check(&close(code, ""), &format!("close {code} \"\""));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        check(&close(code, ""), "1002 close code that may not be sent");
    }
}

#[test]
fn a_whole_message_is_told_from_where_it_lies() {
    let mut bytes = frame(TEXT, "Hello");
    let place = bytes.as_ptr_range();
    let mut gathered = Vec::new();
    let step = FrameReader::server().receive(&mut bytes, &mut gathered, &MessageLimits::default());
    let FrameEvent::Frame(Frame::Text("Hello")) = step.event else { panic!("{:?}", step.event) };
    let FrameEvent::Frame(Frame::Text(text)) = step.event else { unreachable!("the same event") };
    assert!(place.contains(&text.as_ptr()));
    assert_eq!(gathered.capacity(), 0, "nothing was allocated");
}

#[test]
fn who_opened_the_connection_hears_frames_without_mask_only() {
    let limits = MessageLimits::default();
    let mut gathered = Vec::new();
    let mut bytes = *b"\x81\x01a";
    let event = FrameReader::client().receive(&mut bytes, &mut gathered, &limits).event;
    assert_eq!(event, FrameEvent::Frame(Frame::Text("a")));
    let mut bytes = frame(TEXT, "a");
    let event = FrameReader::client().receive(&mut bytes, &mut gathered, &limits).event;
    assert!(matches!(event, FrameEvent::Fault(fault) if fault.code().number() == 1002));
}
