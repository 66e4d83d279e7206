# Varnish for comparison: it caches all responses of the server at @BACKEND@. bine-bench fills in the mark.
vcl 4.1;
backend default {
    .host = "127.0.0.1";
    .port = "@BACKEND@";
}
sub vcl_backend_response {
    set beresp.ttl = 1d;
}
