"""Checks the demo in a browser; its pages have no script.

usage: demo.py URL SCREENSHOTS

Saves a screenshot of each page in the width of a phone and of a desktop in the folder SCREENSHOTS.
"""

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
    "board": "/board",
    "forum": "/board/garden",
    "gallery": "/gallery",
    "guide": "/guide",
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

    def posts_on_the_board(self):
        self.open("/board")
        self.click(self.browser.find_element(By.PARTIAL_LINK_TEXT, "The garden"))
        self.wait_for(lambda: self.text("h1") == "The garden")
        words = "Two meters since Monday.\n<script>alert(1)</script> \u00e4\u00f6\u00fc \U0001f33f"
        self.browser.execute_script(
            "document.querySelector('[name=body]').value = arguments[0]", words)
        self.browser.find_element(By.NAME, "author").send_keys("Ada & Bine")
        self.click(self.browser.find_element(By.CSS_SELECTOR, "main form button"))
        self.wait_for(lambda: "Two meters" in self.text(".messages li:last-child p"))
        assert self.text(".messages li:last-child p") == words, self.text(".messages")
        assert self.text(".messages li:last-child strong") == "Ada & Bine"
        # The post redirects, so a reload sends no second post.
        count = len(self.browser.find_elements(By.CSS_SELECTOR, ".messages li"))
        self.browser.refresh()
        assert len(self.browser.find_elements(By.CSS_SELECTOR, ".messages li")) == count
        self.browser.save_screenshot(str(self.screenshots / "posted-desk.png"))

    def follows_the_guide(self):
        self.open("/guide")
        chapters = len(self.browser.find_elements(By.CSS_SELECTOR, ".chapters > nav a"))
        assert chapters >= 5, f"{chapters} chapters"
        seen = [self.text("article h1")]
        for _ in range(chapters - 1):
            self.click(self.browser.find_element(By.CSS_SELECTOR, ".onward a:last-child"))
            self.wait_for(lambda: self.text("article h1") != seen[-1])
            seen.append(self.text("article h1"))
        assert len(set(seen)) == chapters, seen
        for link in self.links("article a"):
            if link.startswith(self.url):
                self.browser.get(link)
                assert "Not Found" not in self.browser.title, link

    def wears_its_style_sheet(self):
        self.open("/")
        sheets = self.browser.execute_script("return [...document.styleSheets].map(sheet => new URL(sheet.href).pathname)")
        assert len(sheets) == 1 and sheets[0].startswith("/_bine/style-"), sheets
        # Colors are in a file of the program, the layout is in the class of a component.
        facts = self.browser.find_element(By.CSS_SELECTOR, "dl")
        name = facts.get_attribute("class")
        assert name.startswith("facts_"), name
        assert facts.value_of_css_property("display") == "grid"
        terms = [term.value_of_css_property("color") for term in facts.find_elements(By.TAG_NAME, "dt")]
        assert len(set(terms)) == 1 and terms[0] != facts.value_of_css_property("color"), terms

    def shows_its_gallery(self):
        self.open("/gallery")
        files = self.links("main .card")
        assert len(files) == 6, files
        self.browser.get(files[0])
        wide = self.browser.execute_script("return document.images[0].naturalWidth")
        assert wide > 10, f"the smallest drawing is {wide} pixels wide"

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
            ("the board takes a message and shows it as written", demo.posts_on_the_board),
            ("the guide links every chapter to the next", demo.follows_the_guide),
            ("the one style sheet applies, with component classes", demo.wears_its_style_sheet),
            ("the files of the gallery open", demo.shows_its_gallery),
        ])


if __name__ == "__main__":
    main()
