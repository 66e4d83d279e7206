"""Checks the message board with two users in browsers, and across restarts of its server.

usage: live_board.py PROGRAM SCREENSHOTS

PROGRAM is the board; it stores its posts in a folder of this test. Saves screenshots in the folder SCREENSHOTS.
"""

import pathlib
import sys

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import launch_browser, resize
from checks import run_checks
from program import Program, page_holds, until

WIDTHS = {"phone": (390, 844), "desk": (1280, 900)}
FORUM = "/Garden"
# Timestamps in milliseconds of the clock that all browsers of a machine share.
NOW = "performance.timeOrigin + performance.now()"
NOTE_THE_KEY = f"addEventListener('keydown', ({{ key }}) => {{ if (key === 'Enter') window.sent = {NOW}; }}, true)"
NOTE_THE_POST = f"""
new MutationObserver((_, observer) => {{
  if (!document.body.textContent.includes(arguments[0])) return;
  window.seen = {NOW};
  observer.disconnect();
}}).observe(document.body, {{ childList: true, subtree: true, characterData: true }})
"""


class People:
    """Ada and Bo, each with their own browser."""

    def __init__(self, board, ada, bo, screenshots):
        self.board, self.ada, self.bo = board, ada, bo
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def open(self, browser, path=FORUM):
        browser.get(self.board.url(path))
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        # Lost if the page is ever loaded again.
        browser.execute_script("window.stays = true")

    def post(self, browser, text):
        browser.find_element(By.NAME, "body").send_keys(text, Keys.ENTER)

    def shows(self, browser, text):
        """Waits until a post is in the list."""
        page_holds(browser, f"[...document.querySelectorAll('li')].some((one) => one.textContent.endsWith({text!r}))")

    def field(self, browser):
        """The text of the field, its selection, and whether it has the focus."""
        return browser.execute_script("""
            const field = document.querySelector('[name=body]');
            return [field.value, field.selectionStart, field.selectionEnd, field === document.activeElement]""")

    def a_post_reaches_other_users(self):
        self.open(self.ada)
        self.open(self.bo)
        self.bo.find_element(By.NAME, "body").send_keys("half a sentence", Keys.SHIFT, *[Keys.ARROW_LEFT] * 8)
        text = "Two meters since Monday. <b>"
        self.ada.execute_script(NOTE_THE_KEY)
        self.bo.execute_script(NOTE_THE_POST, text)
        self.post(self.ada, text)
        self.shows(self.bo, text)
        self.shows(self.ada, text)
        # Ada's field is empty and focused for the next post; Bo's draft and selection are
        # unchanged.
        until(lambda: self.field(self.ada) == ["", 0, 0, True], lambda: self.field(self.ada))
        assert self.field(self.bo) == ["half a sentence", 7, 15, True], self.field(self.bo)
        assert all(browser.execute_script("return window.stays") for browser in (self.ada, self.bo)), "a page was loaded again"
        took = self.bo.execute_script("return window.seen") - self.ada.execute_script("return window.sent")
        return f"{took:.0f} ms from the key to the other page"

    def presence_is_shown(self):
        self.bo.get("about:blank")
        self.open(self.ada)
        page_holds(self.ada, "document.querySelector('p').textContent.startsWith('1 here')")
        self.open(self.bo)
        page_holds(self.ada, "document.querySelector('p').textContent.startsWith('2 here')")
        self.bo.get("about:blank")
        page_holds(self.ada, "document.querySelector('p').textContent.startsWith('1 here')")
        assert self.ada.execute_script("return window.stays")

    def new_posts_are_counted(self):
        def garden():
            return self.bo.execute_script("return document.querySelector('li').textContent.trim()")

        self.open(self.bo)
        self.bo.find_element(By.XPATH, "//button[.='All forums']").click()
        page_holds(self.bo, "document.querySelector('h1').textContent.startsWith('Forums')")
        page_holds(self.bo, "document.documentElement.dataset.live === 'open'")
        assert garden() == "Garden: 0 new", garden()
        self.bo.execute_script("window.stays = true")
        self.open(self.ada)
        self.post(self.ada, "Rain at last.")
        until(lambda: garden() == "Garden: 1 new", garden)
        assert self.bo.execute_script("return window.stays")

    def drafts_survive_a_restart(self):
        self.open(self.ada)
        self.open(self.bo)
        field = self.bo.find_element(By.NAME, "body")
        field.send_keys("half a sen")
        address = self.board.address
        self.board.kill()
        page_holds(self.bo, "document.documentElement.dataset.live === 'connecting'")
        field.send_keys("ten", Keys.ENTER)
        page_holds(self.bo, "document.querySelector('[role=alert]')?.textContent.includes('It may have arrived')")
        self.bo.save_screenshot(str(self.screenshots / "board-away.png"))
        field.send_keys(Keys.SHIFT, *[Keys.ARROW_LEFT] * 6)
        # A post arrives while the server runs on a different port; then the server is killed again.
        self.board.start()
        posted = self.board.ask("POST", "/board/post", '{"forum":"Garden","body":"Meanwhile."}', Content_Type="application/json")
        assert posted[0] == 200, posted
        self.board.kill()
        self.board.start(address)
        self.shows(self.bo, "Meanwhile.")
        page_holds(self.bo, "document.documentElement.dataset.live === 'open'")
        assert self.field(self.bo) == ["half a senten", 7, 13, True], self.field(self.bo)
        assert self.bo.execute_script("return window.stays"), "the page was loaded again"
        field.send_keys(Keys.END, "ce", Keys.ENTER)
        self.shows(self.ada, "half a sentence")
        page_holds(self.bo, "!document.querySelector('[role=alert]')")

    def forms_work_without_script(self):
        self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.bo.get(self.board.url("/Workshop"))
            self.post(self.bo, "Without script.")
            until(lambda: "Without script." in self.bo.page_source, lambda: self.bo.page_source)
            # The post redirects, so a reload sends no second post.
            self.bo.refresh()
            assert self.bo.current_url == self.board.url("/Workshop"), self.bo.current_url
            assert self.bo.page_source.count("Without script.") == 1, self.bo.page_source
        finally:
            self.bo.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def problems_are_shown_at_the_field(self):
        self.open(self.bo)
        self.bo.execute_script("document.querySelector('[name=body]').required = false")
        for text, length in [("", 0), ("x" * 501, 501)]:
            self.bo.execute_script("document.querySelector('[name=body]').value = arguments[0]", text)
            self.bo.find_element(By.TAG_NAME, "button").click()
            page_holds(self.bo, f"document.querySelector('[role=alert]')?.textContent.endsWith('not {length}')")
            assert self.field(self.bo)[0] == text, "the draft is lost"
        self.bo.save_screenshot(str(self.screenshots / "board-problem.png"))
        # Chromium's accessibility tree, as a screen reader gets it.
        nodes = self.accessibility_tree(self.bo)
        assert [node for node in nodes if node["role"] == "alert"], nodes
        [field] = [node for node in nodes if node["role"] == "textbox"]
        assert (field["name"], field["invalid"]) == ("Message", "true"), field
        assert "must have from 1 to 500 letters" in field["description"], field

    def screen_readers_get_updates(self):
        self.open(self.ada)
        nodes = self.accessibility_tree(self.ada)
        assert [node for node in nodes if node["role"] == "list" and node.get("live") == "polite"], nodes
        assert [node["name"] for node in nodes if node["role"] in ("heading", "textbox", "button")] == ["Garden", "Message", "Post", "All forums"], nodes

    def accessibility_tree(self, browser):
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        tree = []
        for node in nodes:
            facts = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
            facts.update({name: node.get(name, {}).get("value") for name in ("role", "name", "description")})
            tree.append(facts)
        return tree

    def the_page_fits(self):
        for size, (width, height) in WIDTHS.items():
            resize(self.bo, width, height)
            for name, path in {"forums": "/", "forum": FORUM}.items():
                self.open(self.bo, path)
                wide = self.bo.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, f"{path} is {wide} pixels wide on a {size} of {width}"
                self.bo.save_screenshot(str(self.screenshots / f"board-{name}-{size}.png"))


def main():
    _, program, screenshots = sys.argv
    with Program(program) as board, launch_browser() as ada, launch_browser() as bo:
        people = People(board, ada, bo, screenshots)
        run_checks([
            ("a post appears for other users of the same forum", people.a_post_reaches_other_users),
            ("the page shows the number of present users", people.presence_is_shown),
            ("an open page counts new posts", people.new_posts_are_counted),
            ("drafts survive a crash of the server", people.drafts_survive_a_restart),
            ("the board's form works without script", people.forms_work_without_script),
            ("problems of a post are shown at its field", people.problems_are_shown_at_the_field),
            ("a screen reader announces new posts and the purpose of fields", people.screen_readers_get_updates),
            ("the board fits a phone and a desktop", people.the_page_fits),
        ])


if __name__ == "__main__":
    main()
