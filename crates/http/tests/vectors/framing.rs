//! Vectors for the framing of content.

use crate::vectors;

fn post(lines: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}")
}

vectors! {
    accepts_content_of_known_length: post("Content-Length: 5\r\n\r\nhello") => "POST / @a \"hello\"";
    ends_content_at_content_length: post("Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n") => "POST / @a \"hello\"; GET / @b";
    accepts_content_that_looks_like_a_request: post("Content-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n") => "POST / @a \"GET / HTTP/1.1\\r\\n\\r\\n\"";
    waits_for_incomplete_content: post("Content-Length: 5\r\n\r\nhell") => "POST / @a \"hell ...";
    reads_length_0_as_no_content: post("Content-Length: 0\r\n\r\n") => "POST / @a";
    reads_post_without_length_as_no_content: post("\r\n") => "POST / @a";
    accepts_get_with_content: "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" => "GET / @a \"x\"";
    accepts_leading_zeros_in_length: post("Content-Length: 0005\r\n\r\nhello") => "POST / @a \"hello\"";

    rejects_two_lengths: post("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello") => "400 more than one Content-Length";
    rejects_two_equal_lengths: post("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello") => "400 more than one Content-Length";
    rejects_list_of_equal_lengths: post("Content-Length: 5, 5\r\n\r\nhello") => "400 malformed Content-Length";
    rejects_negative_length: post("Content-Length: -1\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_with_sign: post("Content-Length: +5\r\n\r\nhello") => "400 malformed Content-Length";
    rejects_length_in_hexadecimal: post("Content-Length: 0x5\r\n\r\nhello") => "400 malformed Content-Length";
    rejects_length_of_letters: post("Content-Length: abc\r\n\r\n") => "400 malformed Content-Length";
    rejects_empty_length: post("Content-Length:\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_with_space_inside: post("Content-Length: 1 0\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_with_point: post("Content-Length: 5.0\r\n\r\nhello") => "400 malformed Content-Length";
    rejects_length_with_underscore: post("Content-Length: 1_0\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_beyond_64_bits: post("Content-Length: 18446744073709551616\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_of_many_digits: post("Content-Length: 99999999999999999999999999\r\n\r\n") => "400 malformed Content-Length";
    rejects_length_over_limit: post("Content-Length: 1073741825\r\n\r\n") => "413 content over its limit";
    waits_for_content_at_limit: post("Content-Length: 1073741824\r\n\r\n") => "POST / @a \" ...";
    rejects_space_after_content_length: post("Content-Length : 5\r\n\r\nhello") => "400 space before colon";

    rejects_length_and_chunked: post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    rejects_chunked_and_length: post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    rejects_length_of_zero_and_chunked: post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    rejects_length_and_unknown_coding: post("Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nhello") => "400 both Content-Length and Transfer-Encoding";
    rejects_chunked_in_http_1_0: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => "400 Transfer-Encoding in HTTP/1.0";
    rejects_chunked_twice: post("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n") => "400 chunked more than once";
    rejects_chunked_in_two_fields: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 chunked more than once";
    rejects_chunked_before_other_coding: post("Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    rejects_chunked_before_identity: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    rejects_other_coding_alone: post("Transfer-Encoding: gzip\r\n\r\n") => "400 chunked is not the last coding";
    rejects_identity_alone: post("Transfer-Encoding: identity\r\n\r\n") => "400 chunked is not the last coding";
    rejects_coding_that_ends_in_chunked: post("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    answers_other_coding_before_chunked_with_501: post("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n") => "501 transfer coding other than chunked";
    answers_identity_before_chunked_with_501: post("Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n") => "501 transfer coding other than chunked";
    rejects_empty_coding: post("Transfer-Encoding:\r\n\r\n") => "400 malformed Transfer-Encoding";
    rejects_comma_after_chunked: post("Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    rejects_comma_before_chunked: post("Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    rejects_parameter_of_chunked: post("Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    rejects_chunked_in_quotes: post("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    rejects_chunked_after_vertical_tab: post("Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n") => "400 control byte in field value";
    rejects_folded_coding: post("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n") => "400 field line begins with white space";
    rejects_space_after_transfer_encoding: post("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n") => "400 space before colon";
    ignores_name_with_underscore: post("Transfer_Encoding: chunked\r\n\r\n") => "POST / @a";

    requires_length_for_http_1_0_post: "POST / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    requires_length_for_http_1_0_put: "PUT / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    requires_length_for_http_1_0_patch: "PATCH / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    accepts_http_1_0_post_of_length_0: "POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n" => "POST / 1.0";
    accepts_http_1_0_delete_without_length: "DELETE / HTTP/1.0\r\n\r\n" => "DELETE / 1.0";
}
