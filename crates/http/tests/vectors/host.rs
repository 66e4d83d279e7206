//! Decides Host fields.

use crate::vectors;

fn host(value: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n")
}

vectors! {
    a_request_without_host_is_refused: "GET / HTTP/1.1\r\n\r\n" => "400 no Host";
    a_request_with_other_fields_but_no_host_is_refused: "GET / HTTP/1.1\r\nA: b\r\n\r\n" => "400 no Host";
    two_hosts_are_refused: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" => "400 more than one Host";
    two_equal_hosts_are_refused: "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n" => "400 more than one Host";
    two_hosts_are_refused_in_old_requests: "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n" => "400 more than one Host";
    a_bad_host_is_refused_beside_an_absolute_target: "GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n" => "400 invalid host";
    a_bad_host_is_refused_in_old_requests: "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n" => "400 invalid host";
    an_empty_host_is_refused: host("") => "400 invalid host";
    a_port_without_host_is_refused: host(":80") => "400 invalid host";
    a_list_of_hosts_is_refused: host("a,b") => "400 invalid host";
    a_list_of_hosts_with_space_is_refused: host("a, b") => "400 invalid host";
    a_user_is_refused: host("u@a") => "400 invalid host";
    a_path_is_refused: host("a/b") => "400 invalid host";
    a_scheme_is_refused: host("http://a") => "400 invalid host";
    a_port_of_letters_is_refused: host("a:http") => "400 invalid host";
    a_port_beyond_the_last_is_refused: host("a:65536") => "400 invalid host";
    two_ports_are_refused: host("a:1:2") => "400 invalid host";
    an_open_bracket_is_refused: host("[::1") => "400 invalid host";
    a_zone_is_refused: host("[fe80::1%25lo]") => "400 invalid host";
    a_host_with_port_is_taken: host("a.example:8080") => "GET / @a.example:8080";
    an_address_of_ipv6_is_taken: host("[::1]:80") => "GET / @[::1]:80";
    an_address_of_ipv4_is_taken: host("127.0.0.1") => "GET / @127.0.0.1";
    space_around_the_host_is_no_part_of_it: host(" \ta \t") => "GET / @a";
    a_host_without_space_before_it_is_taken: "GET / HTTP/1.1\r\nHOST:a\r\n\r\n" => "GET / @a";
}
