"""Checks that a browser runs no script in content that clients stored in the origin of the application.

usage: inert_browser.py CHANNELS UPLOADS

CHANNELS is the example where any client may create channels, UPLOADS the one that serves files of its users. Each also
serves a trusted folder of this test: the same markup runs there, which shows that the test detects a script.
"""

import json
import pathlib
import sys
import tempfile

from browser import launch_browser
from checks import run_checks
from program import Program, until

# Leaves a trace in each place where a script of the origin can write.
HARM = """
for (const leave of [
  () => { localStorage.ran = "here"; },
  () => { document.cookie = "ran=here; path=/"; },
  () => { top.document.title = "ran here"; },
]) try { leave(); } catch { }
"""
# Media type, extension and content.
DOCUMENTS = [
    ("text/html", "html", f"<!doctype html><title>stored</title><script>{HARM}</script>"),
    ("image/svg+xml", "svg", f'<svg xmlns="http://www.w3.org/2000/svg"><script>{HARM}</script></svg>'),
    ("application/xhtml+xml", "xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>stored</title><script>{HARM}</script></head><body/></html>'),
]
SCRIPT = ("text/javascript", "js", HARM)
# The element that embeds a document, and the attribute with its address.
WAYS = {"top level": None, "iframe": "src", "object": "data", "embed": "src"}
EMBED = """
const [name, attribute, address] = arguments;
const onload = () => { window.isLoaded = true; };
document.body.append(Object.assign(document.createElement(name), { [attribute]: address, onload }));
"""
RUN = """
const [src, done] = arguments;
document.body.append(Object.assign(document.createElement("script"), { src, onload: () => done("loaded"), onerror: () => done("refused") }));
"""
FETCH = """
const [path, done] = arguments;
fetch(path).then((answer) => answer.text()).then(done, (error) => done(String(error)));
"""
TRACES = "return [localStorage.ran, document.cookie].filter((trace) => trace?.includes('here'))"


class Stored:
    """A program with stored content, and the browser that opens it."""

    def __init__(self, program, browser):
        self.program, self.browser = program, browser

    def open_host(self):
        """Opens an empty page of the program, which has no policy."""
        self.browser.get(self.program.url("/host.html"))

    def begin(self):
        self.open_host()
        self.browser.delete_all_cookies()
        self.browser.execute_script("localStorage.clear()")

    def traces(self):
        """The traces that the script left."""
        titles = [title for title in [self.browser.title] if title == "ran here"]
        self.open_host()
        return self.browser.execute_script(TRACES) + titles

    def opened(self, path, way):
        """Opens a document and returns the traces of its script."""
        self.begin()
        self.browser.get_log("performance")
        if WAYS[way]:
            self.browser.execute_script(EMBED, way, WAYS[way], path)
        else:
            self.browser.get(self.program.url(path))
        self.wait_until_done(self.program.url(path))
        return self.traces()

    def wait_until_done(self, url):
        """Waits until the frame that requested a document has displayed it, saved it or given up.

        A frame that saved it or gave up has no event `load`; a frame in another process has no other events.
        """
        events, frames = [], set()

        def is_over():
            if self.browser.execute_script("return window.isLoaded"):
                return True
            for line in self.browser.get_log("performance"):
                event = json.loads(line["message"])["message"]
                params = event["params"]
                events.append(event["method"])
                if event["method"] == "Network.requestWillBeSent" and params["request"]["url"] == url:
                    frames.add(params["frameId"])
                if event["method"] == "Page.frameStoppedLoading" and params["frameId"] in frames:
                    return True
            return False

        until(is_over, lambda: f"{url} was loaded: {events}")

    def does_not_run(self, path):
        for way in WAYS:
            traces = self.opened(path, way)
            assert not traces, (path, way, traces)

    def runs(self, path):
        """The script of a trusted file runs; its traces exist as soon as the document is loaded."""
        for way in WAYS:
            traces = self.opened(path, way)
            assert len(traces) == 3, (path, way, traces)

    def loaded_as_script(self, path):
        """Whether a page can load a script that the browser has opened before, and the traces of that script."""
        self.opened(path, "top level")
        self.begin()
        assert self.browser.execute_async_script(FETCH, path) == SCRIPT[2], path
        return self.browser.execute_async_script(RUN, path), self.traces()

    def is_not_a_script(self, path):
        outcome = self.loaded_as_script(path)
        assert outcome == ("refused", []), (path, outcome)

    def is_a_script(self, path):
        outcome, traces = self.loaded_as_script(path)
        assert outcome == "loaded" and len(traces) == 3, (path, outcome, traces)

    def in_a_channel(self, media_type, _, content):
        path = f"/channels/{media_type}"
        status, text = self.program.ask("PUT", path, content, Content_Type=media_type)
        assert status == 201, (status, text)
        status, text = self.program.ask("GET", path)
        assert (status, text) == (200, content), (status, text)
        return path

    def in_a_file(self, media_type, ending, content):
        head = f'Content-Disposition: form-data; name="file"; filename="harm.{ending}"\r\nContent-Type: {media_type}\r\n\r\n'
        status, text = self.program.ask("POST", "/files", f"--x\r\n{head}{content}\r\n--x--\r\n", Content_Type="multipart/form-data; boundary=x")
        assert status == 303, (status, text)
        _, page = self.program.ask("GET", "/")
        [path] = [part.split('"')[0] for part in page.split('href="')[1:] if part.split('"')[0].endswith(f".{ending}")]
        status, text = self.program.ask("GET", path)
        assert (status, text) == (200, content), (status, text)
        return path


def main():
    _, channels, uploads = sys.argv
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        (root / "host.html").write_text("<!doctype html><title>Empty</title><body></body>")
        for _, ending, content in [*DOCUMENTS, SCRIPT]:
            (root / f"harm.{ending}").write_text(content)
        serve = ["--root", root]
        with Program(channels, *serve) as channels, Program(uploads, *serve) as uploads, launch_browser(logs_network=True) as browser:
            channels, uploads = Stored(channels, browser), Stored(uploads, browser)
            checks = []
            for kind in DOCUMENTS:
                checks += [
                    (f"{kind[0]} of a channel runs no script, as a page or in one", lambda kind=kind: channels.does_not_run(channels.in_a_channel(*kind))),
                    (f"{kind[0]} of a user's file runs no script, as a page or in one", lambda kind=kind: uploads.does_not_run(uploads.in_a_file(*kind))),
                    (f"{kind[0]} of a trusted file runs its script, as a page and in one", lambda kind=kind: uploads.runs(f"/harm.{kind[1]}")),
                ]
            checks += [
                ("a page cannot load a channel as a script", lambda: channels.is_not_a_script(channels.in_a_channel(*SCRIPT))),
                ("a page cannot load a user's file as a script", lambda: uploads.is_not_a_script(uploads.in_a_file(*SCRIPT))),
                ("a page can load a trusted file as a script", lambda: uploads.is_a_script(f"/harm.{SCRIPT[1]}")),
            ]
            run_checks(checks)


if __name__ == "__main__":
    main()
