"""A proxy that adds a Content-Security-Policy to the responses of a program."""

import http.client
import http.server
import threading

POLICY = "default-src 'self'"
# Longer than the pauses of a stream.
SILENCE = 60


class PolicyProxy(http.server.ThreadingHTTPServer):
    """A proxy, on its own port, to the server at an address. Streams are forwarded without buffering."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.upstream = address
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def handle_error(self, request, client_address):
        """A browser may close a connection at any time."""


class Exchange(http.server.BaseHTTPRequestHandler):
    """One request; its connection closes after it."""

    def do_GET(self):
        line = http.client.HTTPConnection(self.server.upstream, timeout=SILENCE)
        try:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            line.request(self.command, self.path, body or None, {**self.headers, "Connection": "close"})
            answer = line.getresponse()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            while piece := answer.read1():
                self.wfile.write(piece)
        finally:
            line.close()

    do_POST = do_GET

    def log_message(self, *_):
        """Logs no requests."""
