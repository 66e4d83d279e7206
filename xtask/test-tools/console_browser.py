"""Decides that a real browser finds nothing wrong with the pages of our programs, under their default headers.

usage: console_browser.py PROGRAM...

Each program is started without options for its headers; its pages are found by their links.
"""

import http.client
import pathlib
import sys

from browser import a_browser
from judge import judge
from program import Program, page_holds, until

POLICY = "default-src 'self'; img-src 'self' data:; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'"
# Where a program has no page at `/`.
FIRST = {"hello": "/hello?name=TLUG"}
LINKS = """
const links = [...document.querySelectorAll("a[href]")].map((link) => new URL(link.href));
return links.filter((link) => link.origin === location.origin).map((link) => link.pathname + link.search);
"""
IS_LIVE = "document.documentElement.outerHTML.includes('<!--live ')"
# What the policy forbids.
INLINE = "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }))"


def is_page(program, path):
    """Whether an address is one of a page, or leads to one. A page has the policy that pages have by default."""
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
    """Looks at a page until it is at rest, and returns where it leads."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(program.url(path))
    if browser.execute_script(f"return {IS_LIVE}"):
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
    links = browser.execute_script(LINKS)
    # The browser tells of this at last: the policy is in force, and all that was said before is known.
    browser.execute_script(INLINE)
    said = []

    def tells_of_the_policy():
        said.extend(line["message"] for line in browser.get_log("browser"))
        return any("inline script" in line for line in said)

    until(tells_of_the_policy, lambda: f"{path}: {said}")
    assert not browser.execute_script("return window.ran"), path
    # A browser asks by itself for an icon that no page names.
    said = [line for line in said if "/favicon.ico - " not in line]
    assert len(said) == 1, f"{path}: {said}"
    return links


def visit_all(path, browser):
    path = pathlib.Path(path)
    with Program(path) as program:
        found, pages = [FIRST.get(path.name, "/")], 0
        # The list grows while it is read.
        for address in found:
            if is_page(program, address):
                pages += 1
                found += [link for link in dict.fromkeys(visit(program, browser, address)) if link not in found]
        assert pages, f"{path.name} has no page"
        return f"{pages} of them"


def main():
    with a_browser() as browser:
        judge([
            (f"the console stays empty on all pages of {pathlib.Path(program).name}", lambda program=program: visit_all(program, browser))
            for program in sys.argv[1:]
        ])


if __name__ == "__main__":
    main()
