"""Receives the reports of browsers about violations of a Content-Security-Policy."""

import http.server
import json
import threading


class Reports(http.server.ThreadingHTTPServer):
    """An endpoint for `report-uri`, on its own port, and the reports that it has received."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Report)
        self.received = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Report(http.server.BaseHTTPRequestHandler):
    """One report, in the format of CSP 2 (`application/csp-report`)."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append(body["csp-report"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Logs no requests."""
