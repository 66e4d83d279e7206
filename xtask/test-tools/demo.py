"""Checks the demo in a browser.

usage: demo.py URL SCREENSHOTS

Saves a screenshot of each page in the width of a phone and of a desktop in the folder SCREENSHOTS.
"""

import contextlib
import pathlib
import sys

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from browser import launch_browser, resize
from checks import run_checks

WIDTHS = {"phone": (390, 844), "desk": (1280, 900)}
PAGES = {
    "home": "/",
    "hello": "/hello?name=TLUG",
    "numbers": "/numbers",
    "board": "/board",
    "forum": "/board/garden",
    "gallery": "/gallery",
    "guide": "/guide",
    "chapter": "/guide/live",
    "search": "/guide/search?q=captures",
    "source": "/source/examples/board.rs",
    "missing": "/nothing-here",
}


class Demo:
    def __init__(self, browser, url, screenshots):
        self.browser = browser
        self.url = url.rstrip("/")
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def open(self, path):
        self.browser.get(self.url + path)

    def text(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector).text

    def pages_fit_and_load(self):
        for size, (width, height) in WIDTHS.items():
            resize(self.browser, width, height)
            for name, path in PAGES.items():
                self.browser.get_log("browser")
                self.open(path)
                messages = [line["message"] for line in self.browser.get_log("browser")]
                # The browser logs a page with status 404.
                messages = [line for line in messages if name != "missing" or "404" not in line]
                assert not messages, f"{name}: {messages}"
                broken = self.browser.execute_script(
                    "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
                assert not broken, f"{name}: images do not load: {broken}"
                wide = self.browser.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, f"{name} is {wide} pixels wide on a {size} of {width}"
                assert self.browser.title, f"{name} has no title"
                self.browser.save_screenshot(str(self.screenshots / f"{name}-{size}.png"))

    def greets(self):
        self.open("/hello")
        self.browser.find_element(By.NAME, "name").send_keys("<b>TLUG</b>")
        self.click(self.browser.find_element(By.CSS_SELECTOR, "main form button"))
        self.wait_for(lambda: self.text("h1") == "Hello <b>TLUG</b>")

    def updates_both_windows(self):
        self.open("/")
        words = "Two meters since Monday. <script>alert(1)</script> \u00e4\u00f6\u00fc \U0001f33f"
        with self.window(0):
            field = self.browser.find_element(By.NAME, "body")
            self.browser.execute_script("arguments[0].value = arguments[1]", field, words)
            field.submit()
        with self.window(1):
            self.wait_for(lambda: self.text(".messages li:first-child p") == words)
            author = self.text(".messages b")
            assert not self.browser.find_elements(By.CSS_SELECTOR, ".messages script")
        assert self.text(".running").endswith(author), (self.text(".running"), author)
        # The form is ready for the next message.
        with self.window(0):
            self.wait_for(lambda: self.browser.find_element(By.NAME, "body").get_attribute("value") == "")
            assert self.text(".messages li:first-child p") == words
        self.browser.save_screenshot(str(self.screenshots / "posted-desk.png"))

    def counts_people_and_tabs(self):
        self.open("/")
        with self.window(1):
            self.wait_for(lambda: self.text(".here") == "1 person, 2 tabs")
        with launch_browser() as other:
            other.get(self.url + "/board/garden")
            with self.window(1):
                self.wait_for(lambda: self.text(".here") == "2 people, 3 tabs")
        with self.window(1):
            self.wait_for(lambda: self.text(".here") == "1 person, 2 tabs")

    def updates_numbers(self):
        for path in ["/", "/numbers"]:
            self.open(path)
            # The curve gets a point a second.
            points = "return document.querySelector('polyline').getAttribute('points')"
            for _ in range(2):
                before = self.browser.execute_script(points)
                self.wait_for(lambda: self.browser.execute_script(points) != before)

    def leaves_connections_for_a_second_front_page(self):
        # A browser opens six connections to one server; a live page holds one while it is visible.
        self.open("/")
        first = self.browser.current_window_handle
        for index in [0, 1]:
            with self.window(index):
                self.wait_for(lambda: self.browser.execute_script("return document.documentElement.dataset.live") == "open")
        self.browser.switch_to.new_window("window")
        try:
            self.updates_both_windows()
        finally:
            self.browser.close()
            self.browser.switch_to.window(first)

    def follows_the_guide(self):
        self.open("/guide/start")
        chapters = len(self.browser.find_elements(By.CSS_SELECTOR, ".side nav a")) - 1
        assert chapters >= 5, f"{chapters} chapters"
        seen = [self.text("article h1")]
        for _ in range(chapters - 1):
            self.click(self.browser.find_element(By.CSS_SELECTOR, ".onward a[rel=next]"))
            self.wait_for(lambda: self.text("article h1") != seen[-1])
            seen.append(self.text("article h1"))
        assert len(set(seen)) == chapters, seen
        assert not self.browser.find_elements(By.CSS_SELECTOR, ".onward a[rel=next]")

    def searches_while_typing(self):
        self.open("/guide/start")
        field = self.browser.find_element(By.NAME, "q")
        field.send_keys("captu")
        self.wait_for(lambda: self.text(".results li:first-child a").endswith("Captures"))
        assert self.browser.execute_script("return location.pathname + location.search") == "/guide/search?q=captu"
        # The visitor keeps writing in the same field.
        field.send_keys("res nosuchword")
        self.wait_for(lambda: "nosuchword" in self.text("article [role=status]"))
        assert not self.browser.find_elements(By.CSS_SELECTOR, ".results li")
        self.browser.back()
        self.wait_for(lambda: self.text("article h1") == "Start")

    def wears_its_style_sheet(self):
        self.open("/")
        sheets = self.browser.execute_script("return [...document.styleSheets].map(sheet => new URL(sheet.href).pathname)")
        assert len(sheets) == 1 and sheets[0].startswith("/_bine/style-"), sheets
        # Colors are in a file of the program, the layout is in the class of a component.
        numbers = "document.querySelector('dl')"
        name = self.browser.execute_script(f"return {numbers}.className")
        assert name.startswith("numbers_"), name
        assert self.browser.execute_script(f"return getComputedStyle({numbers}).display") == "flex"
        colors = f"return [{numbers}, ...{numbers}.querySelectorAll('dt')].map(part => getComputedStyle(part).color)"
        own, *terms = self.browser.execute_script(colors)
        assert len(set(terms)) == 1 and terms[0] != own, (own, terms)

    def shows_its_gallery(self):
        self.open("/gallery")
        files = self.links("main .card")
        assert len(files) == 6, files
        self.browser.get(files[0])
        wide = self.browser.execute_script("return document.images[0].naturalWidth")
        assert wide > 10, f"the smallest drawing is {wide} pixels wide"

    @contextlib.contextmanager
    def window(self, index):
        """Looks into a window of the front page."""
        self.browser.switch_to.frame(index)
        try:
            yield
        finally:
            self.browser.switch_to.default_content()

    def links(self, selector):
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return [link.get_attribute("href") for link in found]

    def wait_for(self, holds):
        # While the page changes, elements found a moment ago are stale. The driver raises several
        # errors for this, some of them without a class of their own.
        WebDriverWait(self.browser, 20, ignored_exceptions=[WebDriverException]).until(lambda _: holds())

    def click(self, element):
        """Scrolls the element into the middle first: a click during a scroll hits the wrong element."""
        into_view = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
        self.browser.execute_script(into_view, element)
        element.click()


def main():
    _, url, screenshots = sys.argv
    with launch_browser() as browser:
        demo = Demo(browser, url, screenshots)
        run_checks([
            ("every page of the demo loads and fits a phone and a desktop", demo.pages_fit_and_load),
            ("the demo greets by name and escapes the name", demo.greets),
            ("a message in one window of the front page appears in both, as written", demo.updates_both_windows),
            ("the windows count people and tabs", demo.counts_people_and_tabs),
            ("the numbers of the server update", demo.updates_numbers),
            ("the front page works in two browser windows", demo.leaves_connections_for_a_second_front_page),
            ("the guide links every chapter to the next", demo.follows_the_guide),
            ("the search shows results while the visitor types", demo.searches_while_typing),
            ("the one style sheet applies, with component classes", demo.wears_its_style_sheet),
            ("the files of the gallery open", demo.shows_its_gallery),
        ])


if __name__ == "__main__":
    main()
