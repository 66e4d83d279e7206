//! Vectors for field lines, their limits, and the meaning of Connection, Expect and Upgrade.

use crate::vectors;

fn with(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// Builds a head of `length` bytes by padding its last field.
fn head_of(length: usize) -> String {
    let rest = with("P: \r\n").len();
    with(&format!("P: {}\r\n", "p".repeat(length - rest)))
}

vectors! {
    accepts_empty_value: with("A:\r\n") => "GET / @a";
    accepts_tab_in_value: with("A: b\tc\r\n") => "GET / @a";
    accepts_bytes_above_ascii_in_value: with("A: \u{e4}\r\n") => "GET / @a";
    accepts_all_token_bytes_in_name: with("!#$%&'*+-.^_`|~09azAZ: b\r\n") => "GET / @a";
    accepts_repeated_unknown_field: with("A: b\r\nA: c\r\n") => "GET / @a";
    accepts_colon_in_value: with("A: b:c\r\n") => "GET / @a";

    rejects_space_before_colon: with("A : b\r\n") => "400 space before colon";
    rejects_tab_before_colon: with("A\t: b\r\n") => "400 space before colon";
    rejects_space_before_colon_of_host: "GET / HTTP/1.1\r\nHost : a\r\n\r\n" => "400 space before colon";
    rejects_line_without_colon: with("A\r\n") => "400 field line without colon";
    rejects_empty_name: with(": b\r\n") => "400 empty field name";
    rejects_space_in_name: with("A b: c\r\n") => "400 forbidden byte in field name";
    rejects_bracket_in_name: with("A(b): c\r\n") => "400 forbidden byte in field name";
    rejects_byte_above_ascii_in_name: with("\u{e4}: c\r\n") => "400 forbidden byte in field name";
    rejects_nul_in_name: with("A\0: c\r\n") => "400 forbidden byte in field name";
    rejects_folded_line: with("A: b\r\n c\r\n") => "400 field line begins with white space";
    rejects_line_folded_by_tab: with("A: b\r\n\tc\r\n") => "400 field line begins with white space";
    rejects_space_before_first_field: "GET / HTTP/1.1\r\n Host: a\r\n\r\n" => "400 field line begins with white space";
    rejects_line_of_spaces: with("  \r\n") => "400 field line begins with white space";
    rejects_bare_line_feed: with("A: b\n") => "400 line feed without carriage return";
    rejects_bare_line_feed_before_next_field: with("A: b\nC: d\r\n") => "400 line feed without carriage return";
    rejects_bare_line_feed_at_end: "GET / HTTP/1.1\r\nHost: a\r\n\n" => "400 line feed without carriage return";
    rejects_two_bare_line_feeds: "GET / HTTP/1.1\r\nHost: a\n\n" => "400 line feed without carriage return";
    rejects_bare_carriage_return_in_value: with("A: b\rc\r\n") => "400 carriage return without line feed";
    rejects_carriage_return_before_line_end: with("A: b\r\r\n") => "400 carriage return without line feed";
    rejects_carriage_return_in_name: with("A\rb: c\r\n") => "400 forbidden byte in field name";
    rejects_nul_in_value: with("A: b\0c\r\n") => "400 control byte in field value";
    rejects_escape_in_value: with("A: \x1b[31m\r\n") => "400 control byte in field value";
    rejects_del_in_value: with("A: \x7f\r\n") => "400 control byte in field value";
    rejects_vertical_tab_in_value: with("A: \x0b\r\n") => "400 control byte in field value";
    waits_for_incomplete_head: "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n" => " ...";
    reports_fault_of_first_malformed_line: with("A: b\r\nC\r\nD : e\r\n") => "400 field line without colon";
    reports_malformed_line_before_field_faults: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nC\r\n\r\n" => "400 field line without colon";
    rejects_malformed_line_before_end_of_head: "GET / HTTP/1.1\r\nHost: a\r\nC\r\n" => "400 field line without colon";

    accepts_100_fields: with(&"A: b\r\n".repeat(99)) => "GET / @a";
    rejects_101_fields: with(&"A: b\r\n".repeat(100)) => "431 too many fields";
    accepts_head_at_limit: head_of(16 * 1024) => "GET / @a";
    rejects_head_over_limit: head_of(16 * 1024 + 1) => "431 head over its limit";
    rejects_endless_field: format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(16 * 1024)) => "431 head over its limit";

    honors_close: with("Connection: close\r\n") => "GET / @a close";
    honors_close_in_any_case: with("Connection: CLOSE\r\n") => "GET / @a close";
    honors_close_in_list: with("Connection: foo , close,bar\r\n") => "GET / @a close";
    honors_close_in_second_field: with("Connection: keep-alive\r\nConnection: close\r\n") => "GET / @a close";
    prefers_close_to_keep_alive: with("Connection: close, keep-alive\r\n") => "GET / @a close";
    ignores_option_that_contains_close: with("Connection: closed\r\n") => "GET / @a";
    honors_keep_alive_in_http_1_0: "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n" => "GET / 1.0 kept";
    prefers_close_in_http_1_0: "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n" => "GET / 1.0";

    accepts_upgrade_with_connection_option: with("Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n") => "GET / @a upgrade websocket";
    ignores_upgrade_without_connection_option: with("Upgrade: websocket\r\n") => "GET / @a";
    ignores_upgrade_in_http_1_0: "GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" => "GET / 1.0";
    does_not_consume_bytes_after_upgrade: format!("{}GET /2 HTTP/1.1\r\nHost: b\r\n\r\n", with("Upgrade: foo\r\nConnection: upgrade\r\n")) => "GET / @a upgrade foo; GET /2 @b";

    reports_expectation: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\nx" => "POST / @a continue \"x\"";
    ignores_expectation_without_content: with("Expect: 100-continue\r\n") => "GET / @a";
    answers_other_expectation_with_417: with("Expect: 200-ok\r\n") => "417 expectation other than 100-continue";
    answers_empty_expectation_with_417: with("Expect:\r\n") => "417 expectation other than 100-continue";
    answers_additional_expectation_with_417: with("Expect: 100-continue, x\r\n") => "417 expectation other than 100-continue";
    ignores_expectation_in_http_1_0: "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: foo\r\n\r\nx" => "POST / 1.0 \"x\"";
}
