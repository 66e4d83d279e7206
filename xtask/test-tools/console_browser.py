"""Checks that a browser reports no error in the pages of our programs, with their default headers.

usage: console_browser.py PROGRAM...

Each program runs with default options for its headers; the test finds its pages by their links.
"""

import http.client
import pathlib
import sys

from browser import launch_browser
from checks import run_checks
from program import Program, page_holds, until

POLICY = "default-src 'self'; img-src 'self' data:; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'"
# Programs without a page at `/`.
FIRST = {"hello": "/hello?name=TLUG"}
LINKS = """
const links = [...document.querySelectorAll("a[href]")].map((link) => new URL(link.href));
return links.filter((link) => link.origin === location.origin).map((link) => link.pathname + link.search);
"""
IS_LIVE = "document.documentElement.outerHTML.includes('<!--live ')"
# The policy forbids inline scripts.
INLINE = "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }))"


def is_page(program, path):
    """Whether an address is a page or redirects to one. A page must have the default policy."""
    line = http.client.HTTPConnection(program.address, timeout=20)
    try:
        line.request("GET", path, headers={"Accept": "text/html"})
        answer = line.getresponse()
        answer.read()
    finally:
        line.close()
    if answer.status == 303:
        return True
    if answer.status != 200 or not answer.headers["Content-Type"].startswith("text/html"):
        return False
    assert answer.headers.get_all("Content-Security-Policy") == [POLICY], (path, answer.headers.items())
    return True


def visit(program, browser, path):
    """Opens a page, waits until it is idle, and returns its links."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(program.url(path))
    if browser.execute_script(f"return {IS_LIVE}"):
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
    links = browser.execute_script(LINKS)
    # The violation is the last message in the log, so all earlier messages have arrived too.
    browser.execute_script(INLINE)
    messages = []

    def violation_is_logged():
        messages.extend(line["message"] for line in browser.get_log("browser"))
        return any("inline script" in line for line in messages)

    until(violation_is_logged, lambda: f"{path}: {messages}")
    assert not browser.execute_script("return window.ran"), path
    # A browser requests an icon even if no page names one.
    messages = [line for line in messages if "/favicon.ico - " not in line]
    assert len(messages) == 1, f"{path}: {messages}"
    return links


def visit_all(path, browser):
    path = pathlib.Path(path)
    with Program(path) as program:
        found, pages = [FIRST.get(path.name, "/")], 0
        # The loop adds to the list that it reads.
        for address in found:
            if is_page(program, address):
                pages += 1
                found += [link for link in dict.fromkeys(visit(program, browser, address)) if link not in found]
        assert pages, f"{path.name} has no page"
        return f"{pages} of them"


def main():
    with launch_browser() as browser:
        run_checks([
            (f"the console stays empty on all pages of {pathlib.Path(program).name}", lambda program=program: visit_all(program, browser))
            for program in sys.argv[1:]
        ])


if __name__ == "__main__":
    main()
