"""Opens, changes and inspects live pages for tests."""

import time

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from live_server import LiveServer

# A morph of a long list takes some milliseconds; a busy machine may need longer.
PATIENCE = 20


class LivePage:
    """A page in a browser, and its server."""

    def __init__(self, browser, server):
        self.browser = browser
        self.server = server

    def open(self, *regions, body="{0}", **pages):
        """Opens a page with these regions on a new server, and waits until it is connected."""
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        # Late requests of the previous page must not reach the server that counts those of this
        # page.
        self.server.close()
        self.server = LiveServer(self.server.script)
        self.server.regions = list(regions)
        self.server.pages = {"/": ("Live", body), **{f"/{name}": page for name, page in pages.items()}}
        self.browser.get(self.server.url())
        if regions:
            self.is_open()

    def is_open(self):
        self.holds("document.documentElement.dataset.live === 'open'")

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def holds(self, expression):
        """Waits until an expression is true on the page."""
        self.returns(f"return Boolean({expression})", True)

    def returns(self, script, expected):
        """Waits until a script returns the expected value. A script that fails is retried, because its element may not exist yet."""
        last = None

        def is_expected():
            nonlocal last
            try:
                last = self.run(script)
                return last == expected
            except WebDriverException as error:
                last = error.msg
                return False

        self.until(is_expected, lambda: f"{script} is {expected!r}, but {last!r}")

    def until(self, holds, what):
        """Waits until a condition is true."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"timed out: {what()}: {self.run('return document.documentElement.outerHTML')}"
            time.sleep(0.01)

    def change(self, number, markup):
        """Changes a region and waits until the page has it."""
        before = self.run("return window.patches ??= (document.addEventListener('bine:patch', () => window.patches++), 0)")
        self.server.set(number, markup)
        self.holds(f"window.patches > {before}")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent", selector)

    def mark(self):
        """The mark at the end of the last region."""
        return self.run("return [...document.body.childNodes].findLast((node) => node.nodeType === Node.COMMENT_NODE).data")

    def console_messages(self):
        """The messages in the console."""
        return [line["message"] for line in self.browser.get_log("browser")]

    def logs(self, text):
        """Waits until a message in the console contains a text."""
        lines = []

        def is_logged():
            lines.extend(self.console_messages())
            return any(text in line for line in lines)

        self.until(is_logged, lambda: f"{text!r} in {lines}")
