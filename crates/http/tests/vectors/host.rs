//! Vectors for Host fields.

use crate::vectors;

fn host(value: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n")
}

vectors! {
    rejects_request_without_host: "GET / HTTP/1.1\r\n\r\n" => "400 no Host";
    rejects_request_with_other_fields_and_no_host: "GET / HTTP/1.1\r\nA: b\r\n\r\n" => "400 no Host";
    rejects_two_hosts: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" => "400 more than one Host";
    rejects_two_equal_hosts: "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n" => "400 more than one Host";
    rejects_two_hosts_in_http_1_0: "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n" => "400 more than one Host";
    rejects_invalid_host_with_absolute_target: "GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n" => "400 invalid host";
    rejects_invalid_host_in_http_1_0: "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n" => "400 invalid host";
    rejects_empty_host: host("") => "400 invalid host";
    rejects_port_without_host: host(":80") => "400 invalid host";
    rejects_list_of_hosts: host("a,b") => "400 invalid host";
    rejects_list_of_hosts_with_space: host("a, b") => "400 invalid host";
    rejects_user_in_host: host("u@a") => "400 invalid host";
    rejects_path_in_host: host("a/b") => "400 invalid host";
    rejects_scheme_in_host: host("http://a") => "400 invalid host";
    rejects_port_of_letters: host("a:http") => "400 invalid host";
    rejects_port_above_65535: host("a:65536") => "400 invalid host";
    rejects_two_ports: host("a:1:2") => "400 invalid host";
    rejects_open_bracket: host("[::1") => "400 invalid host";
    rejects_zone_in_host: host("[fe80::1%25lo]") => "400 invalid host";
    accepts_host_with_port: host("a.example:8080") => "GET / @a.example:8080";
    accepts_ipv6_address: host("[::1]:80") => "GET / @[::1]:80";
    accepts_ipv4_address: host("127.0.0.1") => "GET / @127.0.0.1";
    trims_space_around_host: host(" \ta \t") => "GET / @a";
    accepts_host_without_space_before_it: "GET / HTTP/1.1\r\nHOST:a\r\n\r\n" => "GET / @a";
}
