//! Decides request lines: methods, targets, versions and the line ends before them.

use crate::vectors;

const TAIL: &str = " HTTP/1.1\r\nHost: a\r\n\r\n";

fn get(target: &str) -> String {
    format!("GET {target}{TAIL}")
}

vectors! {
    a_simple_request_is_taken: "GET / HTTP/1.1\r\nHost: a\r\n\r\n" => "GET / @a";
    two_pipelined_requests_are_two: "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n" => "GET /1 @a; GET /2 @b";
    an_old_request_needs_no_host: "GET /a HTTP/1.0\r\n\r\n" => "GET /a 1.0";
    head_is_a_method: format!("HEAD /{TAIL}") => "HEAD / @a";
    delete_is_a_method: format!("DELETE /{TAIL}") => "DELETE / @a";
    options_is_a_method: format!("OPTIONS /{TAIL}") => "OPTIONS / @a";
    trace_is_a_method: format!("TRACE /{TAIL}") => "TRACE / @a";
    query_is_a_method: format!("QUERY /?a{TAIL}") => "QUERY /?a @a";
    patch_without_content_is_taken: format!("PATCH /{TAIL}") => "PATCH / @a";
    connect_is_not_implemented: "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n" => "501 CONNECT";
    connect_with_a_path_is_not_implemented_either: format!("CONNECT /{TAIL}") => "501 CONNECT";
    an_unknown_method_is_not_implemented: format!("BREW /{TAIL}") => "501 unknown method";
    a_method_in_lower_case_is_unknown: format!("get /{TAIL}") => "501 unknown method";
    a_method_that_is_no_token_is_refused: format!("G(T /{TAIL}") => "400 method is not a token";
    an_empty_method_is_refused: format!(" /{TAIL}") => "400 method is not a token";
    a_tab_is_no_space: "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n" => "400 method is not a token";
    a_hello_of_tls_is_refused_at_its_first_byte: b"\x16" => "400 method is not a token";

    one_line_end_before_the_request_is_skipped: format!("\r\n{}", get("/")) => "GET / @a";
    four_line_ends_before_the_request_are_skipped: format!("\r\n\r\n\r\n\r\n{}", get("/")) => "GET / @a";
    five_line_ends_before_the_request_are_refused: format!("\r\n\r\n\r\n\r\n\r\n{}", get("/")) => "400 too many blank lines before the request";
    line_ends_are_counted_for_each_request: format!("\r\n\r\n\r\n{}\r\n\r\n\r\n{}", get("/1"), get("/2")) => "GET /1 @a; GET /2 @a";
    a_bare_line_feed_before_the_request_is_refused: format!("\n{}", get("/")) => "400 line feed without carriage return";
    a_bare_carriage_return_before_the_request_is_refused: format!("\r{}", get("/")) => "400 carriage return without line feed";
    a_space_before_the_request_is_refused: format!(" {}", get("/")) => "400 method is not a token";

    a_request_line_without_version_is_refused: "GET /\r\n\r\n" => "400 request line without version";
    a_request_line_with_a_space_for_a_version_is_refused: "GET / \r\n\r\n" => "400 malformed version";
    a_method_alone_is_refused: "GET\r\n\r\n" => "400 request line without version";
    version_0_9_is_not_supported: "GET / HTTP/0.9\r\n\r\n" => "505 version other than 1.0 and 1.1";
    version_1_2_is_not_supported: "GET / HTTP/1.2\r\nHost: a\r\n\r\n" => "505 version other than 1.0 and 1.1";
    version_2_0_is_not_supported: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" => "505 version other than 1.0 and 1.1";
    version_9_9_is_not_supported: "GET / HTTP/9.9\r\nHost: a\r\n\r\n" => "505 version other than 1.0 and 1.1";
    a_version_in_lower_case_is_malformed: "GET / http/1.1\r\nHost: a\r\n\r\n" => "400 malformed version";
    a_version_without_minor_digit_is_malformed: "GET / HTTP/1\r\nHost: a\r\n\r\n" => "400 malformed version";
    a_version_with_a_leading_zero_is_malformed: "GET / HTTP/01.1\r\nHost: a\r\n\r\n" => "400 malformed version";
    a_version_with_more_behind_it_is_malformed: "GET / HTTP/1.1x\r\nHost: a\r\n\r\n" => "400 malformed version";
    a_version_with_a_comma_is_malformed: "GET / HTTP/1,1\r\nHost: a\r\n\r\n" => "400 malformed version";
    a_version_with_a_space_behind_it_is_malformed: "GET / HTTP/1.1 \r\nHost: a\r\n\r\n" => "400 malformed version";
    another_protocol_is_malformed: "GET / ICAP/1.0\r\nHost: a\r\n\r\n" => "400 malformed version";

    a_bare_line_feed_behind_the_request_line_is_refused: "GET / HTTP/1.1\nHost: a\r\n\r\n" => "400 line feed without carriage return";
    a_bare_carriage_return_behind_the_request_line_is_refused: "GET / HTTP/1.1\rHost: a\r\n\r\n" => "400 carriage return without line feed";
    a_carriage_return_twice_is_refused: "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n" => "400 carriage return without line feed";
    two_spaces_behind_the_method_are_refused: "GET  / HTTP/1.1\r\nHost: a\r\n\r\n" => "400 forbidden byte in request target";
    two_spaces_before_the_version_are_refused: "GET /  HTTP/1.1\r\nHost: a\r\n\r\n" => "400 forbidden byte in request target";
    a_space_in_the_target_is_refused: get("/a b") => "400 forbidden byte in request target";
    a_request_line_alone_is_unfinished: "GET / HTTP/1.1\r\n" => " ...";
    half_a_request_line_is_unfinished: "GET /" => " ...";
    a_carriage_return_alone_is_unfinished: "\r" => " ...";

    a_path_and_a_query_are_told_apart: get("/a?b=c?d") => "GET /a?b=c?d @a";
    an_empty_query_is_a_query: get("/a?") => "GET /a? @a";
    a_path_is_decoded: get("/%41%20b") => "GET /A b @a";
    dot_segments_are_removed: get("/a/./b/../c") => "GET /a/c @a";
    encoded_dot_segments_are_removed: get("/a/%2e%2e/c") => "GET /c @a";
    a_path_is_decoded_once: get("/%252e%252e/") => "GET /%2e%2e/ @a";
    a_query_is_left_as_it_is: get("/?a=%zz&../") => "GET /?a=%zz&../ @a";
    climbing_above_the_root_is_refused: get("/../etc/passwd") => "400 path climbs above the root";
    climbing_above_the_root_encoded_is_refused: get("/%2e%2e/etc") => "400 path climbs above the root";
    climbing_above_the_root_later_is_refused: get("/a/../../etc") => "400 path climbs above the root";
    an_encoded_nul_is_refused: get("/a%00.html") => "400 encoded control character in path";
    an_encoded_line_end_is_refused: get("/a%0d%0aX:") => "400 encoded control character in path";
    an_encoded_slash_is_refused: get("/a%2fb") => "400 encoded slash or backslash in path";
    an_encoded_backslash_is_refused: get("/a%5Cb") => "400 encoded slash or backslash in path";
    an_overlong_slash_is_refused: get("/%c0%af") => "400 path is not UTF-8";
    half_a_triplet_is_refused: get("/a%2") => "400 malformed percent-encoding in path";
    a_triplet_of_other_letters_is_refused: get("/%gg") => "400 malformed percent-encoding in path";
    a_backslash_is_refused: get("/a\\b") => "400 forbidden byte in request target";
    a_fragment_is_refused: get("/a#b") => "400 forbidden byte in request target";
    a_quote_is_refused: get("/\"") => "400 forbidden byte in request target";
    an_angle_bracket_is_refused: get("/<script>") => "400 forbidden byte in request target";
    a_byte_above_ascii_is_refused: get("/\u{e4}") => "400 forbidden byte in request target";
    a_nul_in_the_target_is_refused: get("/\0") => "400 forbidden byte in request target";
    a_delete_in_the_target_is_refused: get("/\x7f") => "400 forbidden byte in request target";
    what_browsers_leave_unencoded_is_taken: get("/a|b{c}^[d]`?{\"}".replace('"', "").as_str()) => "GET /a|b{c}^[d]`?{} @a";

    an_absolute_target_is_taken: "GET http://b.example:80/c?d HTTP/1.1\r\nHost: a\r\n\r\n" => "GET /c?d @b.example:80";
    an_absolute_target_without_path_means_the_root: "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n" => "GET / @b";
    an_absolute_target_may_have_a_query_alone: "GET HTTPS://b?c HTTP/1.1\r\nHost: a\r\n\r\n" => "GET /?c @b";
    an_absolute_target_needs_a_host_field_all_the_same: "GET http://b/ HTTP/1.1\r\n\r\n" => "400 no Host";
    an_absolute_target_is_enough_for_an_old_request: "GET http://b/ HTTP/1.0\r\n\r\n" => "GET / @b 1.0";
    a_user_in_an_absolute_target_is_refused: get("http://u@b/") => "400 invalid host";
    an_absolute_target_without_host_is_refused: get("http:///b") => "400 invalid host";
    another_scheme_is_refused: get("ftp://b/") => "400 request target of no allowed form";
    a_target_without_slash_is_refused: get("a") => "400 request target of no allowed form";
    an_authority_is_no_target: get("a:80") => "400 request target of no allowed form";
    an_asterisk_is_for_options: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" => "OPTIONS * @a";
    an_asterisk_is_for_options_only: get("*") => "400 request target of no allowed form";
    options_of_an_authority_means_the_server: "OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n" => "OPTIONS * @b";
    a_target_at_its_limit_is_taken: get(&format!("/{}", "a".repeat(8191))) => &format!("GET /{} @a", "a".repeat(8191));
    a_target_over_its_limit_is_refused: get(&format!("/{}", "a".repeat(8192))) => "414 request target over its limit";
    an_endless_request_line_is_refused: format!("GET /{}", "a".repeat(16 * 1024)) => "414 request target over its limit";
}
