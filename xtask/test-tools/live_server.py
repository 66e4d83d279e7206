"""A test server with the protocol of live pages, which breaks the protocol where a test asks for it."""

import http.server
import json
import pathlib
import threading
import urllib.parse

TOOLS = pathlib.Path(__file__).parent
SOURCES = TOOLS.parent.parent / "crates/browser/src"
SCRIPT = "/_bine/live-0.js"
# Only scripts and styles in files are allowed.
POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'"
# The longest time without a response in these tests.
PATIENCE = 20


class LiveServer(http.server.ThreadingHTTPServer):
    """A server of pages with live regions, on its own port. A test may change its contents at any time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Exchange)
        # The file of the live script.
        self.script = script
        self.changed = threading.Condition()
        # Address -> a page with a placeholder {0}, {1}, .. for each region.
        self.pages = {}
        # The markup of each region.
        self.regions = []
        # The query of each stream or poll, and whether it was a stream.
        self.asked = []
        # Raw bytes for all open streams.
        self.raw = b""
        # The status of pages.
        self.page_status = 200
        # Delayed pages: address -> its delay.
        self.late = {}
        # The version of the program, if pages have one: the mark in the pages, and the current one.
        self.page_version = self.version = None
        # A status that rejects streams and polls, or a function of `is_stream`.
        self.refusal = lambda is_stream: None
        # Whether a proxy buffers the streams.
        self.is_held = False
        # Answers a POST: a function of the handler and the body that returns status, type and text.
        self.post = lambda exchange, body: (204, None, "")
        self.posts = []
        self.generation = 0
        # A short poll interval for the shutdown, because each page of a test has a server.
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def close(self):
        """Breaks every stream and accepts no more connections."""
        self.cut()
        self.shutdown()
        self.server_close()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def set(self, number, markup):
        """Changes a region and notifies all streams."""
        with self.changed:
            self.regions[number] = markup
            self.changed.notify_all()

    def delay(self, path):
        """Delays a page until the test allows it."""
        return self.late.setdefault(path, Delay())

    def send(self, raw):
        """Sends raw bytes over all streams."""
        with self.changed:
            self.raw += raw.encode()
            self.changed.notify_all()

    def cut(self):
        """Breaks every stream."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def hold(self, generation):
        """Sends no data until all streams break."""
        with self.changed:
            self.changed.wait_for(lambda: self.generation != generation, PATIENCE)

    def page(self, path):
        found = self.pages.get(path.split("?")[0])
        if found is None:
            return None
        regions = [f"<!--live {number}-->{markup}<!--/live {number} {fingerprint(markup)}-->" for number, markup in enumerate(self.regions)]
        title, body = found
        if self.page_version:
            body = f"<!--live 998--><!--/live 998 {self.page_version}-->{body}"
        for number, region in enumerate(regions):
            body = body.replace("{%d}" % number, region)
        head = f'<meta charset="utf-8"><title>{title}</title><script type="module" src="{SCRIPT}"></script>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def wait_for(self, holds):
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE), f"timed out: {self.asked} {self.posts}"

    def handle_error(self, request, client_address):
        """A browser may close a connection at any time."""


class Delay:
    """Events of a delayed page: it was requested, it may be sent, its response is over."""

    def __init__(self):
        self.asked, self.allowed, self.over = threading.Event(), threading.Event(), threading.Event()


def fingerprint(markup):
    """FNV-1a in sixteen hexadecimal digits."""
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
        for prefix, folder in {"/source/": SOURCES, "/tools/": TOOLS}.items():
            if path.startswith(prefix):
                return self.answer(200, "text/javascript", (folder / path.removeprefix(prefix)).read_text())
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
        return self.answer(self.server.page_status, "text/html; charset=utf-8", page)

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
        """Serves the stream of a page, or one poll."""
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
        version = have.pop("998", None)
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
                if version != server.version:
                    news.append(("reload", server.version))
                    version = server.version
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
            # Before the patches: when a later change arrives, the test knows that the raw bytes
            # were read.
            self.wfile.write(raw)
            for name, data in news:
                lines = "".join(f"data: {line}\n" for line in data.split("\n"))
                self.wfile.write(f"event: {name}\n{lines}\n".encode())
            self.wfile.flush()

    def log_message(self, *_):
        """Logs no requests."""
