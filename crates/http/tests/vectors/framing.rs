//! Decides how content is framed, and which framings are refused.

use crate::vectors;

fn post(lines: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}")
}

vectors! {
    content_of_known_length_is_taken: post("Content-Length: 5\r\n\r\nhello") => "POST / @a \"hello\"";
    content_ends_where_its_length_says: post("Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n") => "POST / @a \"hello\"; GET / @b";
    content_may_look_like_a_request: post("Content-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n") => "POST / @a \"GET / HTTP/1.1\\r\\n\\r\\n\"";
    unfinished_content_is_waited_for: post("Content-Length: 5\r\n\r\nhell") => "POST / @a \"hell ...";
    a_length_of_zero_is_no_content: post("Content-Length: 0\r\n\r\n") => "POST / @a";
    post_without_length_has_no_content: post("\r\n") => "POST / @a";
    get_may_have_content: "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" => "GET / @a \"x\"";
    leading_zeros_are_digits: post("Content-Length: 0005\r\n\r\nhello") => "POST / @a \"hello\"";

    two_lengths_are_refused: post("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello") => "400 more than one Content-Length";
    two_equal_lengths_are_refused: post("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello") => "400 more than one Content-Length";
    a_list_of_equal_lengths_is_refused: post("Content-Length: 5, 5\r\n\r\nhello") => "400 malformed Content-Length";
    a_negative_length_is_refused: post("Content-Length: -1\r\n\r\n") => "400 malformed Content-Length";
    a_length_with_a_sign_is_refused: post("Content-Length: +5\r\n\r\nhello") => "400 malformed Content-Length";
    a_length_in_hexadecimal_is_refused: post("Content-Length: 0x5\r\n\r\nhello") => "400 malformed Content-Length";
    a_length_of_letters_is_refused: post("Content-Length: abc\r\n\r\n") => "400 malformed Content-Length";
    an_empty_length_is_refused: post("Content-Length:\r\n\r\n") => "400 malformed Content-Length";
    a_length_with_a_space_inside_is_refused: post("Content-Length: 1 0\r\n\r\n") => "400 malformed Content-Length";
    a_length_with_a_point_is_refused: post("Content-Length: 5.0\r\n\r\nhello") => "400 malformed Content-Length";
    a_length_with_an_underscore_is_refused: post("Content-Length: 1_0\r\n\r\n") => "400 malformed Content-Length";
    a_length_beyond_64_bits_is_refused: post("Content-Length: 18446744073709551616\r\n\r\n") => "400 malformed Content-Length";
    a_length_of_many_digits_is_refused: post("Content-Length: 99999999999999999999999999\r\n\r\n") => "400 malformed Content-Length";
    a_length_over_the_limit_is_too_large: post("Content-Length: 1073741825\r\n\r\n") => "413 content over its limit";
    a_length_at_the_limit_is_waited_for: post("Content-Length: 1073741824\r\n\r\n") => "POST / @a \" ...";
    a_space_before_the_colon_hides_no_length: post("Content-Length : 5\r\n\r\nhello") => "400 space before colon";

    length_and_chunked_are_refused: post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    chunked_and_length_are_refused: post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    a_length_of_zero_and_chunked_are_refused: post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 both Content-Length and Transfer-Encoding";
    length_and_an_unknown_coding_are_refused: post("Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nhello") => "400 both Content-Length and Transfer-Encoding";
    chunked_in_an_old_request_is_refused: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => "400 Transfer-Encoding in HTTP/1.0";
    chunked_twice_is_refused: post("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n") => "400 chunked more than once";
    chunked_in_two_fields_is_refused: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => "400 chunked more than once";
    chunked_before_another_coding_is_refused: post("Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    chunked_before_identity_is_refused: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    another_coding_alone_is_refused: post("Transfer-Encoding: gzip\r\n\r\n") => "400 chunked is not the last coding";
    identity_alone_is_refused: post("Transfer-Encoding: identity\r\n\r\n") => "400 chunked is not the last coding";
    a_word_that_ends_in_chunked_is_another_word: post("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n") => "400 chunked is not the last coding";
    another_coding_before_chunked_is_not_implemented: post("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n") => "501 transfer coding other than chunked";
    identity_before_chunked_is_not_implemented: post("Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n") => "501 transfer coding other than chunked";
    an_empty_coding_is_refused: post("Transfer-Encoding:\r\n\r\n") => "400 malformed Transfer-Encoding";
    a_comma_behind_chunked_is_refused: post("Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    a_comma_before_chunked_is_refused: post("Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    a_parameter_of_chunked_is_refused: post("Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    chunked_in_quotes_is_refused: post("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n") => "400 malformed Transfer-Encoding";
    chunked_behind_a_vertical_tab_is_refused: post("Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n") => "400 control byte in field value";
    a_folded_coding_is_refused: post("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n") => "400 field line begins with white space";
    a_space_before_the_colon_hides_no_coding: post("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n") => "400 space before colon";
    an_underscore_makes_another_field: post("Transfer_Encoding: chunked\r\n\r\n") => "POST / @a";

    an_old_post_needs_a_length: "POST / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    an_old_put_needs_a_length: "PUT / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    an_old_patch_needs_a_length: "PATCH / HTTP/1.0\r\n\r\n" => "411 HTTP/1.0 content without length";
    an_old_post_of_nothing_is_taken: "POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n" => "POST / 1.0";
    an_old_delete_needs_no_length: "DELETE / HTTP/1.0\r\n\r\n" => "DELETE / 1.0";
}
