//! Vectors for chunk lines, extensions, data and trailers.

use crate::vectors;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunked(content: &str) -> String {
    format!("{HEAD}{content}")
}

/// Builds `chunks` chunks of one byte, each with an extension of `extension` bytes.
fn extended(chunks: usize, extension: usize) -> String {
    let chunk = format!("1;{}\r\nx\r\n", "e".repeat(extension - 1));
    chunked(&format!("{}0\r\n\r\n", chunk.repeat(chunks)))
}

fn events(content: &str) -> String {
    format!("POST / @a \"{content}\"")
}

vectors! {
    joins_chunks: chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n") => "POST / @a \"hello world\"";
    accepts_content_without_chunks: chunked("0\r\n\r\n") => "POST / @a \"\"";
    accepts_hex_digits_in_either_case: chunked("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n") => "POST / @a \"01234567890123456789\"";
    accepts_leading_zeros_in_size: chunked("0000000000000005\r\nhello\r\n000\r\n\r\n") => "POST / @a \"hello\"";
    accepts_chunked_in_any_case: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ChUnKeD\r\n\r\n0\r\n\r\n" => "POST / @a \"\"";
    parses_request_after_last_chunk: chunked("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n") => "POST / @a \"x\"; GET / @b";
    waits_for_incomplete_chunks: chunked("5\r\nhe") => "POST / @a \"he ...";
    waits_for_incomplete_size: chunked("5") => "POST / @a \" ...";
    waits_for_missing_empty_line: chunked("0\r\n") => "POST / @a \" ...";

    rejects_empty_size: chunked("\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_non_hex_size: chunked("g\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_negative_size: chunked("-1\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_size_with_sign: chunked("+5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_size_with_prefix: chunked("0x5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_size_with_underscore: chunked("1_0\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_space_after_size: chunked("5 \r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_space_before_size: chunked(" 5\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_tab_after_size: chunked("5\t\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_nul_after_size: chunked("5\0\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_17_digits_of_size: chunked("00000000000000005\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_overflowing_size: chunked("FFFFFFFFFFFFFFFFF\r\n") => "POST / @a \"\"; 400 malformed chunk size";
    rejects_largest_size_before_data: chunked("ffffffffffffffff\r\n") => "POST / @a \"\"; 413 content over its limit";
    rejects_size_over_limit_before_data: chunked("40000001\r\n") => "POST / @a \"\"; 413 content over its limit";
    waits_for_data_of_size_at_limit: chunked("40000000\r\n") => "POST / @a \" ...";
    adds_up_sizes: chunked("1\r\nx\r\n40000000\r\n") => "POST / @a \"x\"; 413 content over its limit";
    rejects_bare_line_feed_after_size: chunked("5\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    rejects_bare_carriage_return_after_size: chunked("5\rhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 carriage return without line feed";

    rejects_data_longer_than_size: chunked("5\r\nhello!\r\n0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    rejects_data_shorter_than_size: chunked("6\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\\r\"; 400 chunk data not followed by CRLF";
    rejects_data_without_line_end: chunked("5\r\nhello0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    rejects_bare_line_feed_after_data: chunked("5\r\nhello\n0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";
    rejects_bare_carriage_return_after_data: chunked("5\r\nhello\r0\r\n\r\n") => "POST / @a \"hello\"; 400 chunk data not followed by CRLF";

    ignores_extension: chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n") => "POST / @a \"hello\"";
    ignores_quoted_extension: chunked("5;a=\"b c\"\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\"";
    ignores_several_extensions: chunked("5;a=b; c;d\r\nhello\r\n0\r\n\r\n") => "POST / @a \"hello\"";
    rejects_semicolon_without_extension: chunked("5;\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 control byte in chunk extension";
    rejects_nul_in_extension: chunked("5;a\0\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 control byte in chunk extension";
    rejects_bare_line_feed_in_extension: chunked("5;a\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    rejects_bare_line_feed_after_semicolon: chunked("5;\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    rejects_bare_carriage_return_in_extension: chunked("5;a\rb\r\nhello\r\n0\r\n\r\n") => "POST / @a \"\"; 400 carriage return without line feed";
    ignores_extension_at_limit: extended(1, 256) => &events("x");
    rejects_extension_over_limit: extended(1, 257) => "POST / @a \"\"; 400 chunk extensions over their limit";
    ignores_extensions_at_total_limit: extended(16, 256) => &events(&"x".repeat(16));
    rejects_extensions_over_total_limit: extended(17, 256) => &format!("{}; 400 chunk extensions over their limit", events(&"x".repeat(16)));

    drops_trailer: chunked("0\r\nX-Sum: 1\r\n\r\n") => "POST / @a \"\"";
    drops_100_trailers: chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(100))) => "POST / @a \"\"";
    rejects_101_trailers: chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(101))) => "POST / @a \"\"; 431 too many fields";
    drops_trailers_at_limit: chunked(&format!("0\r\nA: {}\r\n\r\n", "b".repeat(16 * 1024 - 7))) => "POST / @a \"\"";
    rejects_trailers_over_limit: chunked(&format!("0\r\nA: {}\r\n\r\n", "b".repeat(16 * 1024 - 6))) => "POST / @a \"\"; 431 head over its limit";
    rejects_endless_trailer: chunked(&format!("0\r\nA: {}", "b".repeat(16 * 1024))) => "POST / @a \"\"; 431 head over its limit";
    rejects_content_length_as_trailer: chunked("0\r\nContent-Length: 5\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    rejects_transfer_encoding_as_trailer: chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    rejects_host_as_trailer: chunked("0\r\nHost: b\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    rejects_authorization_as_trailer: chunked("0\r\nAuthorization: b\r\n\r\n") => "POST / @a \"\"; 400 field that may not be a trailer";
    rejects_trailer_with_space_before_colon: chunked("0\r\nA : b\r\n\r\n") => "POST / @a \"\"; 400 space before colon";
    rejects_trailer_without_colon: chunked("0\r\nGET / HTTP/1.1\r\n\r\n") => "POST / @a \"\"; 400 field line without colon";
    rejects_folded_trailer: chunked("0\r\nA: b\r\n c\r\n\r\n") => "POST / @a \"\"; 400 field line begins with white space";
    rejects_trailer_with_bare_line_feed: chunked("0\r\nA: b\n\r\n") => "POST / @a \"\"; 400 line feed without carriage return";
    rejects_bare_line_feed_after_last_chunk: chunked("0\r\n\n") => "POST / @a \"\"; 400 line feed without carriage return";
    rejects_nul_in_trailer: chunked("0\r\nA: \0\r\n\r\n") => "POST / @a \"\"; 400 control byte in field value";
}
