# The hello page as a Rack application, for Puma.
require "cgi"

run lambda { |environment|
  name = CGI.unescape(environment["QUERY_STRING"][/(?:\A|&)name=([^&]*)/, 1] || "")
  page = "<h1>Hello #{CGI.escapeHTML(name)}</h1>"
  [200, { "Content-Type" => "text/html; charset=utf-8", "Content-Length" => page.bytesize.to_s }, [page]]
}
