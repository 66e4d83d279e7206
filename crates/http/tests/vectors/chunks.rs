//! Decides chunk lines, extensions, data and trailers.

use crate::vectors;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunked(content: &str) -> String {
    format!("{HEAD}{content}")
}

/// So many chunks of one byte, each with an extension of so many bytes.
fn extended(chunks: usize, extension: usize) -> String {
    let chunk = format!("1;{}\r\nx\r\n", "e".repeat(extension - 1));
    chunked(&format!("{}0\r\n\r\n", chunk.repeat(chunks)))
}

fn told(content: &str) -> String {
    format!("POST / @a \"{content}\"")
}

vectors! {
    chunks_are_joined: chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n") => "POST / @a \"hello world\"";
    no_chunk_is_no_content: chunked("0\r\n\r\n") => "POST / @a \"\"";
    a_size_may_have_letters_of_either_case: chunked("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n") => "POST / @a \"01234567890123456789\"";
    a_size_may_have_leading_zeros: chunked("0000000000000005\r\nhello\r\n000\r\n\r\n") => "POST / @a \"hello\"";
    chunked_in_any_case_is_chunked: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ChUnKeD\r\n\r\n0\r\n\r\n" => "POST / @a \"\"";
    the_next_request_follows_the_last_chunk: chunked("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n") => "POST / @a \"x\"; GET / @b";
    unfinished_chunks_are_waited_for: chunked("5\r\nhe") => "POST / @a \"he ...";
    an_unfinished_size_is_waited_for: chunked("5") => "POST / @a \" ...";
    a_missing_empty_line_is_waited_for: chunked("0\r\n") => "POST / @a \" ...";

    an_empty_size_is_refused: chunked("\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_size_of_other_letters_is_refused: chunked("g\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_negative_size_is_refused: chunked("-1\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_size_with_a_sign_is_refused: chunked("+5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_size_with_a_prefix_is_refused: chunked("0x5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_size_with_an_underscore_is_refused: chunked("1_0\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_space_behind_a_size_is_refused: chunked("5 \r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_space_before_a_size_is_refused: chunked(" 5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_tab_behind_a_size_is_refused: chunked("5\t\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    a_nul_behind_a_size_is_refused: chunked("5\0\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    seventeen_digits_are_refused: chunked("00000000000000005\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    an_overflowing_size_is_refused: chunked("FFFFFFFFFFFFFFFFF\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    the_largest_size_is_too_large_at_once: chunked("ffffffffffffffff\r\n") => "POST / @a \"\"; 413 content over its limit";
    a_size_over_the_limit_is_too_large_at_once: chunked("40000001\r\n") => "POST / @a \"\"; 413 content over its limit";
    a_size_at_the_limit_is_waited_for: chunked("40000000\r\n") => "POST / @a \" ...";
    sizes_are_added_up: chunked("1\r\nx\r\n40000000\r\n") => "POST / @a \"x\"; 413 content over its limit";
    a_bare_line_feed_behind_a_size_is_refused: chunked("5\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    a_bare_carriage_return_behind_a_size_is_refused: chunked("5\rhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 carriage return without line feed";

    data_longer_than_its_size_is_refused: chunked("5\r\nhello!\r\n0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    data_shorter_than_its_size_is_refused: chunked("6\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\\r\"; 400 chunk data not followed by CRLF";
    data_without_a_line_end_is_refused: chunked("5\r\nhello0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    a_bare_line_feed_behind_data_is_refused: chunked("5\r\nhello\n0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    a_bare_carriage_return_behind_data_is_refused: chunked("5\r\nhello\r0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";

    an_extension_is_ignored: chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n") => "POST / @a \"hello\"";
    an_extension_in_quotes_is_ignored: chunked("5;a=\"b c\"\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\"";
    several_extensions_are_ignored: chunked("5;a=b; c;d\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\"";
    a_semicolon_without_extension_is_refused: chunked("5;\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 control byte in chunk extension";
    a_nul_in_an_extension_is_refused: chunked("5;a\0\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 control byte in chunk extension";
    a_bare_line_feed_in_an_extension_is_refused: chunked("5;a\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    a_bare_line_feed_behind_a_semicolon_is_refused: chunked("5;\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    a_bare_carriage_return_in_an_extension_is_refused: chunked("5;a\rb\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 carriage return without line feed";
    an_extension_at_its_limit_is_ignored: extended(1, 256) => &told("x");
    an_extension_over_its_limit_is_refused: extended(1, 257) => "POST / @a \"\"; 400 chunk extensions over their limit";
    extensions_at_their_limit_are_ignored: extended(16, 256) => &told(&"x".repeat(16));
    extensions_over_their_limit_are_refused: extended(17, 256) => &format!("{}; 400 chunk extensions over their limit", told(&"x".repeat(16)));

    a_trailer_is_dropped: chunked("0\r\nX-Sum: 1\r\n\r\n") => "POST / @a \"\"";
    a_hundred_trailers_are_dropped: chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(100))) => "POST / @a \"\"";
    a_hundred_and_one_trailers_are_refused: chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(101))) => "POST / @a \"\"; 431 too many fields";
    trailers_at_their_limit_are_dropped: chunked(&format!("0\r\nA: {}\r\n\r\n", "b".repeat(16 * 1024 - 7))) => "POST / @a \"\"";
    trailers_over_their_limit_are_refused: chunked(&format!("0\r\nA: {}\r\n\r\n", "b".repeat(16 * 1024 - 6))) => "POST / @a \"\"; 431 head over its limit";
    an_endless_trailer_is_refused: chunked(&format!("0\r\nA: {}", "b".repeat(16 * 1024))) => "POST / @a \"\"; 431 head over its limit";
    a_length_as_trailer_is_refused: chunked("0\r\nContent-Length: 5\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    a_coding_as_trailer_is_refused: chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    a_host_as_trailer_is_refused: chunked("0\r\nHost: b\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    an_authorization_as_trailer_is_refused: chunked("0\r\nAuthorization: b\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    a_trailer_with_a_space_before_its_colon_is_refused: chunked("0\r\nA : b\r\n\r\n") => "POST / @a \"\"; 400 space before colon";
    a_trailer_without_colon_is_refused: chunked("0\r\nGET / HTTP/1.1\r\n\r\n") => "POST / @a \"\"; 400 field line without colon";
    a_folded_trailer_is_refused: chunked("0\r\nA: b\r\n c\r\n\r\n") => "POST / @a \"\"; 400 field line begins with white space";
    a_trailer_with_a_bare_line_feed_is_refused: chunked("0\r\nA: b\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    a_bare_line_feed_behind_the_last_chunk_is_refused: chunked("0\r\n\n") => "POST / @a \"\"; 400 line feed without carriage return";
    a_nul_in_a_trailer_is_refused: chunked("0\r\nA: \0\r\n\r\n") => "POST / @a \"\"; 400 control byte in field value";
}
