//! Decides field lines, their limits, and what Connection, Expect and Upgrade mean.

use crate::vectors;

fn with(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// So many bytes of head, the last field padded.
fn head_of(length: usize) -> String {
    let rest = with("P: \r\n").len();
    with(&format!("P: {}\r\n", "p".repeat(length - rest)))
}

vectors! {
    an_empty_value_is_taken: with("A:\r\n") => "GET / @a";
    a_tab_in_a_value_is_taken: with("A: b\tc\r\n") => "GET / @a";
    bytes_above_ascii_in_a_value_are_taken: with("A: \u{e4}\r\n") => "GET / @a";
    all_token_bytes_in_a_name_are_taken: with("!#$%&'*+-.^_`|~09azAZ: b\r\n") => "GET / @a";
    a_repeated_unknown_field_is_taken: with("A: b\r\nA: c\r\n") => "GET / @a";
    a_colon_in_a_value_is_taken: with("A: b:c\r\n") => "GET / @a";

    a_space_before_the_colon_is_refused: with("A : b\r\n") => "400 space before colon";
    a_tab_before_the_colon_is_refused: with("A\t: b\r\n") => "400 space before colon";
    a_space_before_the_colon_of_host_is_refused: "GET / HTTP/1.1\r\nHost : a\r\n\r\n" => "400 space before colon";
    a_line_without_colon_is_refused: with("A\r\n") => "400 field line without colon";
    an_empty_name_is_refused: with(": b\r\n") => "400 empty field name";
    a_space_in_a_name_is_refused: with("A b: c\r\n") => "400 forbidden byte in field name";
    a_bracket_in_a_name_is_refused: with("A(b): c\r\n") => "400 forbidden byte in field name";
    a_byte_above_ascii_in_a_name_is_refused: with("\u{e4}: c\r\n") => "400 forbidden byte in field name";
    a_nul_in_a_name_is_refused: with("A\0: c\r\n") => "400 forbidden byte in field name";
    a_folded_line_is_refused: with("A: b\r\n c\r\n") => "400 field line begins with white space";
    a_line_folded_by_a_tab_is_refused: with("A: b\r\n\tc\r\n") => "400 field line begins with white space";
    space_before_the_first_field_is_refused: "GET / HTTP/1.1\r\n Host: a\r\n\r\n" => "400 field line begins with white space";
    a_line_of_spaces_is_refused: with("  \r\n") => "400 field line begins with white space";
    a_bare_line_feed_is_refused: with("A: b\n") => "400 line feed without carriage return";
    a_bare_line_feed_before_another_field_is_refused: with("A: b\nC: d\r\n") => "400 line feed without carriage return";
    a_bare_line_feed_at_the_end_is_refused: "GET / HTTP/1.1\r\nHost: a\r\n\n" => "400 line feed without carriage return";
    two_bare_line_feeds_are_refused: "GET / HTTP/1.1\r\nHost: a\n\n" => "400 line feed without carriage return";
    a_bare_carriage_return_in_a_value_is_refused: with("A: b\rc\r\n") => "400 carriage return without line feed";
    a_carriage_return_before_the_line_end_is_refused: with("A: b\r\r\n") => "400 carriage return without line feed";
    a_carriage_return_in_a_name_is_refused: with("A\rb: c\r\n") => "400 forbidden byte in field name";
    a_nul_in_a_value_is_refused: with("A: b\0c\r\n") => "400 control byte in field value";
    an_escape_in_a_value_is_refused: with("A: \x1b[31m\r\n") => "400 control byte in field value";
    a_delete_in_a_value_is_refused: with("A: \x7f\r\n") => "400 control byte in field value";
    a_vertical_tab_in_a_value_is_refused: with("A: \x0b\r\n") => "400 control byte in field value";
    an_unfinished_head_is_waited_for: "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n" => " ...";
    the_fault_of_an_earlier_line_is_the_one_told: with("A: b\r\nC\r\nD : e\r\n") => "400 field line without colon";
    a_malformed_line_is_refused_before_what_the_fields_mean: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nC\r\n\r\n" => "400 field line without colon";
    a_malformed_line_is_refused_before_the_head_ends: "GET / HTTP/1.1\r\nHost: a\r\nC\r\n" => "400 field line without colon";

    a_hundred_fields_are_taken: with(&"A: b\r\n".repeat(99)) => "GET / @a";
    a_hundred_and_one_fields_are_refused: with(&"A: b\r\n".repeat(100)) => "431 too many fields";
    a_head_at_its_limit_is_taken: head_of(16 * 1024) => "GET / @a";
    a_head_over_its_limit_is_refused: head_of(16 * 1024 + 1) => "431 head over its limit";
    an_endless_field_is_refused: format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(16 * 1024)) => "431 head over its limit";

    close_is_heeded: with("Connection: close\r\n") => "GET / @a close";
    close_in_any_case_is_heeded: with("Connection: CLOSE\r\n") => "GET / @a close";
    close_in_a_list_is_heeded: with("Connection: foo , close,bar\r\n") => "GET / @a close";
    close_in_a_second_field_is_heeded: with("Connection: keep-alive\r\nConnection: close\r\n") => "GET / @a close";
    close_wins_over_keep_alive: with("Connection: close, keep-alive\r\n") => "GET / @a close";
    a_word_that_contains_close_is_another_word: with("Connection: closed\r\n") => "GET / @a";
    an_old_request_may_ask_to_be_kept: "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n" => "GET / 1.0 kept";
    close_wins_in_an_old_request: "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n" => "GET / 1.0";

    an_upgrade_needs_its_connection_option: with("Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n") => "GET / @a upgrade websocket";
    an_upgrade_without_connection_option_is_ignored: with("Upgrade: websocket\r\n") => "GET / @a";
    an_upgrade_in_an_old_request_is_ignored: "GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" => "GET / 1.0";
    an_upgrade_leaves_the_next_bytes_alone: format!("{}GET /2 HTTP/1.1\r\nHost: b\r\n\r\n", with("Upgrade: foo\r\nConnection: upgrade\r\n")) => "GET / @a upgrade foo; GET /2 @b";

    an_expectation_is_seen: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\nx" => "POST / @a continue \"x\"";
    an_expectation_without_content_is_idle: with("Expect: 100-continue\r\n") => "GET / @a";
    another_expectation_cannot_be_met: with("Expect: 200-ok\r\n") => "417 expectation other than 100-continue";
    an_empty_expectation_cannot_be_met: with("Expect:\r\n") => "417 expectation other than 100-continue";
    another_expectation_beside_the_known_one_cannot_be_met: with("Expect: 100-continue, x\r\n") => "417 expectation other than 100-continue";
    an_expectation_in_an_old_request_is_ignored: "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: foo\r\n\r\nx" => "POST / 1.0 \"x\"";
}
