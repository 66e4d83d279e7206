//! Vectors for single frames: chapters 1 to 4, and closing (7).

use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits};

use super::feed::{check, frame};
use super::sequences;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// Builds a close frame.
fn close(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    frame(CLOSE, [&code.to_be_bytes(), reason.as_ref()].concat())
}

sequences! {
    // Messages in one frame.
    accepts_empty_text: [frame(TEXT, "")] => "text \"\"";
    accepts_text_with_short_length: [frame(TEXT, "*".repeat(125))] => "text of 125 from 0x2a to 0x2a";
    accepts_text_with_two_byte_length: [frame(TEXT, "*".repeat(126))] => "text of 126 from 0x2a to 0x2a";
    accepts_text_with_longest_two_byte_length: [frame(TEXT, "*".repeat(65535))] => "text of 65535 from 0x2a to 0x2a";
    accepts_text_with_eight_byte_length: [frame(TEXT, "*".repeat(65536))] => "text of 65536 from 0x2a to 0x2a";
    accepts_empty_binary: [frame(BINARY, "")] => "binary \"\"";
    accepts_any_byte_in_binary: [frame(BINARY, [0xfe, 0x00, 0xff])] => "binary \"\\xfe\\x00\\xff\"";
    accepts_binary_with_two_byte_length: [frame(BINARY, [0xfe; 127])] => "binary of 127 from 0xfe to 0xfe";
    separates_consecutive_messages: [frame(TEXT, "a"), frame(BINARY, "b"), frame(TEXT, "c")]
        => "text \"a\"; binary \"b\"; text \"c\"";

    // Pings and pongs.
    accepts_empty_ping: [frame(PING, "")] => "ping \"\"";
    accepts_any_byte_in_ping: [frame(PING, [0, 0xff, 0xfe])] => "ping \"\\x00\\xff\\xfe\"";
    accepts_ping_of_125_bytes: [frame(PING, [0xfe; 125])] => "ping of 125 from 0xfe to 0xfe";
    rejects_ping_of_126_bytes: [frame(PING, [0xfe; 126])] => "1002 control frame over 125 bytes";
    accepts_unsolicited_pong: [frame(PONG, ""), frame(PONG, "a")] => "pong \"\"; pong \"a\"";
    returns_each_of_ten_pings: [frame(PING, "a").repeat(10)]
        => "ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"; ping \"a\"";

    // Reserved bits and opcodes.
    rejects_first_reserved_bit: [frame(TEXT | 0x40, "a")] => "1002 reserved bit in a frame";
    rejects_second_reserved_bit: [frame(TEXT, "a"), frame(TEXT | 0x20, "b")] => "text \"a\"; 1002 reserved bit in a frame";
    rejects_third_reserved_bit: [frame(BINARY | 0x10, "a")] => "1002 reserved bit in a frame";
    rejects_reserved_bits_of_ping: [frame(PING | 0x50, "a")] => "1002 reserved bit in a frame";
    rejects_reserved_bits_of_close: [frame(CLOSE | 0x70, "")] => "1002 reserved bit in a frame";

    // Masks and lengths.
    rejects_frame_without_mask: [*b"\x81\x01a"] => "1002 frame masked the wrong way";
    rejects_long_form_of_short_length: [*b"\x81\xfe\x00\x7d"] => "1002 length of a frame not in its shortest form";
    rejects_longer_form_of_long_length: [*b"\x82\xff\0\0\0\0\0\0\xff\xff"] => "1002 length of a frame not in its shortest form";
    rejects_length_with_sign_bit: [*b"\x82\xff\x80\0\0\0\0\x01\0\0"] => "1002 length of a frame not in its shortest form";
    rejects_length_over_limit_before_payload: [*b"\x82\xff\0\0\0\0\0\x03\x0d\x41"] => "1009 message over its limit";
    rejects_longest_length_before_payload: [*b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"] => "1009 message over its limit";
    accepts_message_at_limit: [frame(BINARY, vec![7; 200_000])] => "binary of 200000 from 0x07 to 0x07";

    // Closing.
    accepts_empty_close: [frame(CLOSE, "")] => "close";
    accepts_close_with_reason: [close(1000, "bye")] => "close 1000 \"bye\"";
    accepts_close_with_longest_reason: [close(1001, "*".repeat(123))] => "close 1001 of 123 from 0x2a to 0x2a";
    rejects_reason_of_124_bytes: [close(1000, "*".repeat(124))] => "1002 control frame over 125 bytes";
    rejects_close_of_one_byte: [frame(CLOSE, "a")] => "1002 close frame of one byte";
    rejects_reason_that_is_not_utf8: [close(1000, b"\xce\xba\xe1\xbd")] => "1007 text is not UTF-8";
    ignores_frames_after_close: [close(1000, ""), frame(TEXT, "a"), frame(PING, ""), close(1002, "")] => "close 1000 \"\"";
    rejects_fragmented_close: [frame(0x08, "")] => "1002 control frame in fragments";
    accepts_close_within_fragmented_message: [frame(0x01, "a"), close(1000, "")] => "close 1000 \"\"";

    // Incomplete frames.
    waits_for_rest_of_header: [[0x81, 0xfe, 0x01]] => "...";
    waits_for_rest_of_ping: [[0x89, 0x82, 1, 2, 3, 4, 5]] => "...";
    waits_for_rest_of_text: [*b"\x81\x83\0\0\0\0ab"] => "...";
}

#[test]
fn rejects_unknown_opcodes() {
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        let bytes = [frame(TEXT, "a"), frame(0x80 | opcode, "")].concat();
        check(&bytes, "text \"a\"; 1002 unknown opcode");
    }
}

#[test]
fn accepts_only_sendable_close_codes() {
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        check(&close(code, ""), &format!("close {code} \"\""));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        check(&close(code, ""), "1002 close code that may not be sent");
    }
}

#[test]
fn returns_whole_message_without_copying() {
    let mut bytes = frame(TEXT, "Hello");
    let place = bytes.as_ptr_range();
    let mut buffer = Vec::new();
    let step = FrameReader::server().receive(&mut bytes, &mut buffer, &MessageLimits::default());
    let FrameEvent::Frame(Frame::Text("Hello")) = step.event else { panic!("{:?}", step.event) };
    let FrameEvent::Frame(Frame::Text(text)) = step.event else { unreachable!("the same event") };
    assert!(place.contains(&text.as_ptr()));
    assert_eq!(buffer.capacity(), 0, "nothing was allocated");
}

#[test]
fn client_reader_accepts_only_unmasked_frames() {
    let limits = MessageLimits::default();
    let mut buffer = Vec::new();
    let mut bytes = *b"\x81\x01a";
    let event = FrameReader::client().receive(&mut bytes, &mut buffer, &limits).event;
    assert_eq!(event, FrameEvent::Frame(Frame::Text("a")));
    let mut bytes = frame(TEXT, "a");
    let event = FrameReader::client().receive(&mut bytes, &mut buffer, &limits).event;
    assert!(matches!(event, FrameEvent::Fault(fault) if fault.code().number() == 1002));
}
