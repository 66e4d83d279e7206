"""Decides what a server says that speaks the protocol of live pages exactly, and breaks it where a test wants it to."""

import http.server
import json
import pathlib
import threading
import urllib.parse

JUDGES = pathlib.Path(__file__).parent
SOURCES = JUDGES.parent.parent / "crates/browser/src"
SCRIPT = "/_bine/live-0.js"
# Nothing of a page's own runs but its files; no style but theirs.
POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'"
# As long as a server may be silent in these tests.
PATIENCE = 20


class LiveServer(http.server.ThreadingHTTPServer):
    """A server of pages with live regions, on a port of its own; what is in it may be changed at any moment."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Exchange)
        # The file of the live script.
        self.script = script
        self.changed = threading.Condition()
        # Address -> a page with a place {0}, {1}, .. for each region.
        self.pages = {}
        # What each region holds.
        self.regions = []
        # What each stream or poll asked, and whether it was a stream.
        self.asked = []
        # What comes next over the streams there are, as raw bytes.
        self.raw = b""
        # Pages that come late: address -> its delay.
        self.late = {}
        # A status that streams and polls are refused with, or a function of `is_stream`.
        self.refusal = lambda is_stream: None
        # Whether something on the way holds back what streams bring.
        self.is_held = False
        # What answers a POST: a function of the handler and the body, which returns status, type and text.
        self.post = lambda exchange, body: (204, None, "")
        self.posts = []
        self.generation = 0
        # Looks often whether it has been closed: each page of a test has a server.
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def close(self):
        """Breaks every stream and accepts no more connections."""
        self.cut()
        self.shutdown()
        self.server_close()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def set(self, number, markup):
        """A region changes, and everybody who shows it is told."""
        with self.changed:
            self.regions[number] = markup
            self.changed.notify_all()

    def delay(self, path):
        """From now on a page does not come until that is allowed."""
        return self.late.setdefault(path, Delay())

    def send(self, raw):
        """Sends bytes over all streams, whatever they are."""
        with self.changed:
            self.raw += raw.encode()
            self.changed.notify_all()

    def cut(self):
        """Breaks every stream."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def hold(self, generation):
        """Says nothing until all streams break."""
        with self.changed:
            self.changed.wait_for(lambda: self.generation != generation, PATIENCE)

    def page(self, path):
        found = self.pages.get(path.split("?")[0])
        if found is None:
            return None
        regions = [f"<!--live {number}-->{markup}<!--/live {number} {fingerprint(markup)}-->" for number, markup in enumerate(self.regions)]
        title, body = found
        for number, region in enumerate(regions):
            body = body.replace("{%d}" % number, region)
        head = f'<meta charset="utf-8"><title>{title}</title><script type="module" src="{SCRIPT}"></script>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def wait_for(self, holds):
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE), f"it did not come: {self.asked} {self.posts}"

    def handle_error(self, request, client_address):
        """A browser may go at any time."""


class Delay:
    """Somebody has asked for a page, it may come, and it has come or is not wanted any more."""

    def __init__(self):
        self.asked, self.allowed, self.over = threading.Event(), threading.Event(), threading.Event()


def fingerprint(markup):
    """Sixteen digits (FNV-1a)."""
    found = 0xCBF29CE484222325
    for byte in markup.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return f"{found:016x}"


class Exchange(http.server.BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/_bine/live":
            return self.follow({name: values[0] for name, values in urllib.parse.parse_qs(query).items()})
        if path == SCRIPT:
            return self.answer(200, "text/javascript", pathlib.Path(self.server.script).read_text())
        for beneath, folder in {"/source/": SOURCES, "/judge/": JUDGES}.items():
            if path.startswith(beneath):
                return self.answer(200, "text/javascript", (folder / path.removeprefix(beneath)).read_text())
        if path == "/favicon.ico":
            return self.answer(204, None, "")
        page = self.server.page(self.path)
        late = self.server.late.get(path)
        if late:
            late.asked.set()
            late.allowed.wait(PATIENCE)
        try:
            self.give(page)
        finally:
            if late:
                late.over.set()

    def give(self, page):
        if page is None:
            return self.answer(404, "text/html; charset=utf-8", "<!doctype html><title>Missing</title><h1>Not Found</h1>")
        return self.answer(200, "text/html; charset=utf-8", page)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.changed:
            self.server.posts.append((self.path, self.headers, body))
            self.server.changed.notify_all()
        status, kind, text = self.server.post(self, body)
        self.answer(status, kind, text)

    def answer(self, status, kind, text, **fields):
        content = text.encode()
        self.send_response(status)
        if kind == "Location":
            self.send_header("Location", text)
            content = b""
        elif kind:
            self.send_header("Content-Type", kind)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def follow(self, asked):
        """The stream of a page, or one poll of it."""
        server = self.server
        is_stream = self.headers["Accept"] == "text/event-stream"
        with server.changed:
            server.asked.append((asked, is_stream))
            server.changed.notify_all()
            refusal = server.refusal(is_stream)
            generation, sent = server.generation, len(server.raw)
        if refusal:
            return self.answer(refusal, "text/plain", "") if refusal != 204 else self.answer(204, None, "")
        have = dict(part.split(".") for part in asked.get("have", "").split(",") if part)
        if is_stream:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            if server.is_held:
                return server.hold(generation)
            self.wfile.write(b":\n\n")
        while True:
            with server.changed:
                news = []
                if set(have) != {str(number) for number in range(len(server.regions))}:
                    news.append(("reload", ""))
                    have = {str(number): "" for number in range(len(server.regions))}
                for number, markup in enumerate(server.regions):
                    new = fingerprint(markup)
                    if have[str(number)] != new and not news:
                        have[str(number)] = new
                        news.append(("patch", f"{number} {new}\n{markup}"))
                raw, sent = server.raw[sent:], len(server.raw)
                if not news and not raw:
                    if server.generation != generation:
                        return
                    server.changed.wait(0.5 if is_stream else 2)
                    if not is_stream and server.generation == generation and have == {str(n): fingerprint(m) for n, m in enumerate(server.regions)}:
                        return self.answer(204, None, "", Cursor="7")
                    continue
            if not is_stream:
                return self.answer(200, "application/json", json.dumps([{"event": name, "data": data} for name, data in news]))
            # First: a change that a test makes after it has sent raw bytes shows that they were read.
            self.wfile.write(raw)
            for name, data in news:
                lines = "".join(f"data: {line}\n" for line in data.split("\n"))
                self.wfile.write(f"event: {name}\n{lines}\n".encode())
            self.wfile.flush()

    def log_message(self, *_):
        """Says nothing."""
