//! Vectors for request lines: methods, targets, versions, and the line ends before them.

use crate::vectors;

const TAIL: &str = " HTTP/1.1\r\nHost: a\r\n\r\n";

fn get(target: &str) -> String {
    format!("GET {target}{TAIL}")
}

vectors! {
    accepts_simple_request: "GET / HTTP/1.1\r\nHost: a\r\n\r\n" => "GET / @a";
    parses_two_pipelined_requests: "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n" => "GET /1 @a; GET /2 @b";
    accepts_http_1_0_without_host: "GET /a HTTP/1.0\r\n\r\n" => "GET /a 1.0";
    accepts_method_head: format!("HEAD /{TAIL}") => "HEAD / @a";
    accepts_method_delete: format!("DELETE /{TAIL}") => "DELETE / @a";
    accepts_method_options: format!("OPTIONS /{TAIL}") => "OPTIONS / @a";
    accepts_method_trace: format!("TRACE /{TAIL}") => "TRACE / @a";
    accepts_method_query: format!("QUERY /?a{TAIL}") => "QUERY /?a @a";
    accepts_patch_without_content: format!("PATCH /{TAIL}") => "PATCH / @a";
    answers_connect_with_501: "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n" => "501 CONNECT";
    answers_connect_with_path_with_501: format!("CONNECT /{TAIL}") => "501 CONNECT";
    answers_unknown_method_with_501: format!("BREW /{TAIL}") => "501 unknown method";
    answers_lower_case_method_with_501: format!("get /{TAIL}") => "501 unknown method";
    rejects_method_that_is_not_a_token: format!("G(T /{TAIL}") => "400 method is not a token";
    rejects_empty_method: format!(" /{TAIL}") => "400 method is not a token";
    rejects_tab_after_method: "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n" => "400 method is not a token";
    rejects_tls_client_hello_at_first_byte: b"\x16" => "400 method is not a token";

    skips_one_line_end_before_request: format!("\r\n{}", get("/")) => "GET / @a";
    skips_four_line_ends_before_request: format!("\r\n\r\n\r\n\r\n{}", get("/")) => "GET / @a";
    rejects_five_line_ends_before_request: format!("\r\n\r\n\r\n\r\n\r\n{}", get("/")) => "400 too many blank lines before the request";
    counts_line_ends_per_request: format!("\r\n\r\n\r\n{}\r\n\r\n\r\n{}", get("/1"), get("/2")) => "GET /1 @a; GET /2 @a";
    rejects_bare_line_feed_before_request: format!("\n{}", get("/")) => "400 line feed without carriage return";
    rejects_bare_carriage_return_before_request: format!("\r{}", get("/")) => "400 carriage return without line feed";
    rejects_space_before_request: format!(" {}", get("/")) => "400 method is not a token";

    rejects_request_line_without_version: "GET /\r\n\r\n" => "400 request line without version";
    rejects_request_line_with_space_for_version: "GET / \r\n\r\n" => "400 malformed version";
    rejects_method_alone: "GET\r\n\r\n" => "400 request line without version";
    answers_version_0_9_with_505: "GET / HTTP/0.9\r\n\r\n" => "505 version other than 1.0 and 1.1";
    answers_version_1_2_with_505: "GET / HTTP/1.2\r\nHost: a\r\n\r\n" => "505 version other than 1.0 and 1.1";
    answers_version_2_0_with_505: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" => "505 version other than 1.0 and 1.1";
    answers_version_9_9_with_505: "GET / HTTP/9.9\r\nHost: a\r\n\r\n" => "505 version other than 1.0 and 1.1";
    rejects_lower_case_version: "GET / http/1.1\r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_version_without_minor_digit: "GET / HTTP/1\r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_version_with_leading_zero: "GET / HTTP/01.1\r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_text_after_version: "GET / HTTP/1.1x\r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_version_with_comma: "GET / HTTP/1,1\r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_space_after_version: "GET / HTTP/1.1 \r\nHost: a\r\n\r\n" => "400 malformed version";
    rejects_other_protocol_name: "GET / ICAP/1.0\r\nHost: a\r\n\r\n" => "400 malformed version";

    rejects_bare_line_feed_after_request_line: "GET / HTTP/1.1\nHost: a\r\n\r\n" => "400 line feed without carriage return";
    rejects_bare_carriage_return_after_request_line: "GET / HTTP/1.1\rHost: a\r\n\r\n" => "400 carriage return without line feed";
    rejects_double_carriage_return: "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n" => "400 carriage return without line feed";
    rejects_two_spaces_after_method: "GET  / HTTP/1.1\r\nHost: a\r\n\r\n" => "400 forbidden byte in request target";
    rejects_two_spaces_before_version: "GET /  HTTP/1.1\r\nHost: a\r\n\r\n" => "400 forbidden byte in request target";
    rejects_space_in_target: get("/a b") => "400 forbidden byte in request target";
    waits_for_fields: "GET / HTTP/1.1\r\n" => " ...";
    waits_for_rest_of_request_line: "GET /" => " ...";
    waits_after_single_carriage_return: "\r" => " ...";

    separates_path_and_query: get("/a?b=c?d") => "GET /a?b=c?d @a";
    keeps_empty_query: get("/a?") => "GET /a? @a";
    decodes_path: get("/%41%20b") => "GET /A b @a";
    removes_dot_segments: get("/a/./b/../c") => "GET /a/c @a";
    removes_encoded_dot_segments: get("/a/%2e%2e/c") => "GET /c @a";
    decodes_path_once: get("/%252e%252e/") => "GET /%2e%2e/ @a";
    does_not_decode_query: get("/?a=%zz&../") => "GET /?a=%zz&../ @a";
    rejects_path_above_root: get("/../etc/passwd") => "400 path climbs above the root";
    rejects_encoded_path_above_root: get("/%2e%2e/etc") => "400 path climbs above the root";
    rejects_later_segment_above_root: get("/a/../../etc") => "400 path climbs above the root";
    rejects_encoded_nul: get("/a%00.html") => "400 encoded control character in path";
    rejects_encoded_line_end: get("/a%0d%0aX:") => "400 encoded control character in path";
    rejects_encoded_slash: get("/a%2fb") => "400 encoded slash or backslash in path";
    rejects_encoded_backslash: get("/a%5Cb") => "400 encoded slash or backslash in path";
    rejects_overlong_slash: get("/%c0%af") => "400 path is not UTF-8";
    rejects_incomplete_triplet: get("/a%2") => "400 malformed percent-encoding in path";
    rejects_triplet_of_non_hex_letters: get("/%gg") => "400 malformed percent-encoding in path";
    rejects_backslash: get("/a\\b") => "400 forbidden byte in request target";
    rejects_fragment: get("/a#b") => "400 forbidden byte in request target";
    rejects_quote: get("/\"") => "400 forbidden byte in request target";
    rejects_angle_bracket: get("/<script>") => "400 forbidden byte in request target";
    rejects_byte_above_ascii: get("/\u{e4}") => "400 forbidden byte in request target";
    rejects_nul_in_target: get("/\0") => "400 forbidden byte in request target";
    rejects_del_in_target: get("/\x7f") => "400 forbidden byte in request target";
    accepts_bytes_that_browsers_do_not_encode: get("/a|b{c}^[d]`?{\"}".replace('"', "").as_str()) => "GET /a|b{c}^[d]`?{} @a";

    accepts_absolute_target: "GET http://b.example:80/c?d HTTP/1.1\r\nHost: a\r\n\r\n" => "GET /c?d @b.example:80";
    reads_absolute_target_without_path_as_root: "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n" => "GET / @b";
    accepts_absolute_target_with_query_only: "GET HTTPS://b?c HTTP/1.1\r\nHost: a\r\n\r\n" => "GET /?c @b";
    requires_host_with_absolute_target: "GET http://b/ HTTP/1.1\r\n\r\n" => "400 no Host";
    accepts_absolute_target_without_host_in_http_1_0: "GET http://b/ HTTP/1.0\r\n\r\n" => "GET / @b 1.0";
    rejects_user_in_absolute_target: get("http://u@b/") => "400 invalid host";
    rejects_absolute_target_without_host: get("http:///b") => "400 invalid host";
    rejects_other_scheme: get("ftp://b/") => "400 request target of no allowed form";
    rejects_target_without_slash: get("a") => "400 request target of no allowed form";
    rejects_authority_form: get("a:80") => "400 request target of no allowed form";
    accepts_asterisk_for_options: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" => "OPTIONS * @a";
    rejects_asterisk_for_get: get("*") => "400 request target of no allowed form";
    reads_options_without_path_as_asterisk: "OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n" => "OPTIONS * @b";
    accepts_target_at_limit: get(&format!("/{}", "a".repeat(8191))) => &format!("GET /{} @a", "a".repeat(8191));
    rejects_target_over_limit: get(&format!("/{}", "a".repeat(8192))) => "414 request target over its limit";
    rejects_endless_request_line: format!("GET /{}", "a".repeat(16 * 1024)) => "414 request target over its limit";
}
