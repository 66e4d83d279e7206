"""A second origin for pages of foreign sites: one empty page without any policy."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PAGE = b"<!doctype html><title>Another site</title><body></body>"


class Foreign(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


def start_foreign_site():
    """Serves the page until the program ends. Returns its address, which is cross-site to 127.0.0.1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://localhost:{server.server_port}/"
