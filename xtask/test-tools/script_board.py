"""Checks the application that `bine new` writes with two users in browsers, and across a crash of its server.

usage: script_board.py BINE SCREENSHOTS

BINE is the program. Saves screenshots in the folder SCREENSHOTS.
"""

import pathlib
import subprocess
import sys
import tempfile

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser, resize
from checks import run_checks
from program import Program, page_holds, replace_text, until

WIDTHS = {"phone": (390, 844), "desk": (1280, 900)}


class People:
    """Ada and Bo, each with their own browser, at a new board."""

    def __init__(self, board, site, ada, bo, screenshots):
        self.board, self.site, self.ada, self.bo = board, site, ada, bo
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def open(self, browser):
        browser.get(self.board.url())
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        # Lost if the page is ever loaded again.
        browser.execute_script("window.stays = true")

    def post(self, browser, text):
        browser.find_element(By.NAME, "body").send_keys(text, Keys.ENTER)

    def shows(self, browser, text):
        """Waits until a post is in the list."""
        page_holds(browser, f"[...document.querySelectorAll('li')].some((one) => one.textContent.endsWith({text!r}))")

    def stay(self):
        assert all(browser.execute_script("return window.stays") for browser in (self.ada, self.bo)), "a page was loaded again"

    def field(self, browser):
        return browser.execute_script("return document.querySelector('[name=body]').value")

    def a_post_reaches_other_users(self):
        self.open(self.ada)
        self.open(self.bo)
        self.bo.find_element(By.NAME, "body").send_keys("half a sentence")
        self.post(self.ada, "Two meters since Monday. <b>")
        self.shows(self.bo, "Two meters since Monday. <b>")
        self.shows(self.ada, "Two meters since Monday. <b>")
        until(lambda: self.field(self.ada) == "", lambda: self.field(self.ada))
        assert self.field(self.bo) == "half a sentence", self.field(self.bo)
        self.stay()

    def a_post_survives_a_crash(self):
        self.post(self.ada, "Which seed?")
        self.shows(self.ada, "Which seed?")
        self.board.kill()
        self.board.start(self.board.address)
        for browser in (self.ada, self.bo):
            page_holds(browser, "document.documentElement.dataset.live === 'open'")
        page = self.board.ask("GET", "/")[1]
        assert page.count("Which seed?") == 1 and page.count("Two meters since Monday.") == 1, page
        self.post(self.ada, "Who has yeast?")
        self.shows(self.bo, "Who has yeast?")
        assert self.field(self.bo) == "half a sentence", self.field(self.bo)
        self.stay()

    def a_saved_file_changes_open_pages(self):
        page = self.site / "index.tsx"
        replace_text(page, page.read_text().replace("<b>{message.author}</b>", "<strong>{message.author}</strong>"))
        for browser in (self.ada, self.bo):
            page_holds(browser, "document.querySelectorAll('li strong').length === 3")
        self.stay()

    def a_mistake_is_shown_until_it_is_corrected(self):
        page = self.site / "index.tsx"
        right = page.read_text()
        replace_text(page, right.replace("<button>", "<buton>").replace("</button>", "</buton>"))
        until(lambda: self.board.ask("GET", "/", Accept="text/html")[0] == 500, "the mistake was not noticed")
        shown = self.board.ask("GET", "/", Accept="text/html")[1]
        assert "index.tsx:13:8: HTML has no element" in shown, shown
        replace_text(page, right)
        until(lambda: self.board.ask("GET", "/")[0] == 200, "the correction was not noticed")

    def it_fits_every_window(self):
        for scheme in ["light", "dark"]:
            self.ada.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for name, size in WIDTHS.items():
                resize(self.ada, *size)
                self.open(self.ada)
                self.ada.save_screenshot(str(self.screenshots / f"script-board-{scheme}-{name}.png"))
                width = self.ada.execute_script("return document.scrollingElement.scrollWidth")
                assert width <= size[0], f"{width} pixels wide in a window of {size[0]}"

    def the_console_is_empty(self):
        # The browser reports each request that failed while the server was down, or had the mistake.
        entries = [entry for browser in (self.ada, self.bo) for entry in browser.get_log("browser")]
        entries = [entry for entry in entries if "/_bine/live" not in entry["message"]]
        assert not entries, entries


def main(bine, screenshots):
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder, "board")
        subprocess.run([bine, "new", site], check=True, stdout=subprocess.DEVNULL)
        with (
            Program(bine, "--development", "on", words=("serve", str(site))) as board,
            launch_browser() as ada,
            launch_browser() as bo,
        ):
            people = People(board, site, ada, bo, screenshots)
            run_checks([
                ("a post on a new board reaches other users without a reload", people.a_post_reaches_other_users),
                ("posts on a new board survive a crash of the server, once", people.a_post_survives_a_crash),
                ("a saved file changes live regions of open pages", people.a_saved_file_changes_open_pages),
                ("a mistake is shown until it is corrected", people.a_mistake_is_shown_until_it_is_corrected),
                ("a new board fits every window", people.it_fits_every_window),
                ("a new board writes no errors into the console", people.the_console_is_empty),
            ])


if __name__ == "__main__":
    main(*sys.argv[1:])
