"""Checks that open pages take a new version of their program.

usage: live_version.py PROGRAM SCREENSHOTS

PROGRAM is the example of a house in the browser. Saves screenshots in the folder SCREENSHOTS.
"""

import os
import pathlib
import sys

from browser import launch_browser, resize
from checks import run_checks
from program import Program, new_version, page_holds

# Changes of the sources between the versions: a heading and a color. Optimized code may hold eight
# bytes of a text in an instruction.
CHANGES = {"<h1>Home": "<h1>Nest", "honeydew": "lavender"}
OLD_COLOR, NEW_COLOR = "rgb(240, 255, 240)", "rgb(230, 230, 250)"
# Notes the requests of the page, and what each frame shows.
OBSERVE = """
const ask = fetch;
window.asked = [];
window.fetch = (url, ...rest) => { asked.push(String(url)); return ask(url, ...rest); };
window.colors = new Set();
window.stays = true;
const look = () => { colors.add(getComputedStyle(document.querySelector('section')).backgroundColor); requestAnimationFrame(look); };
look();
"""
STATE = """
const field = document.querySelector('[name=degrees]');
return [window.stays, field.value, field === document.activeElement, scrollY]
"""


class OpenPage:
    def __init__(self, browser, home, screenshots):
        self.browser, self.home = browser, home
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)
        resize(browser, 500, 400)

    def open(self):
        self.browser.get(self.home.url())
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")
        self.browser.execute_script(OBSERVE)
        field = self.browser.find_element("name", "degrees")
        field.clear()
        field.send_keys("2")
        self.browser.execute_script("scrollTo(0, 150)")
        page_holds(self.browser, "scrollY === 150")

    def restart(self):
        address = self.home.address
        self.home.kill()
        page_holds(self.browser, "document.documentElement.dataset.live === 'connecting'")
        self.home.start(address)

    def pages_asked(self):
        return self.browser.execute_script("return asked.filter((url) => url === location.href).length")

    def takes_a_new_version(self):
        self.open()
        before = self.browser.execute_script(STATE)
        assert before == [True, "2", True, 150], before
        self.browser.save_screenshot(str(self.screenshots / "version-old.png"))
        changed = pathlib.Path(self.home.folder.name) / "new-version"
        new_version(self.home.program, changed, CHANGES)
        self.home.program = str(changed)
        self.restart()
        page_holds(self.browser, "document.querySelector('h1').textContent === 'Nest'")
        page_holds(self.browser, f"getComputedStyle(document.querySelector('section')).backgroundColor === '{NEW_COLOR}'")
        after = self.browser.execute_script(STATE)
        assert after == before, after
        # No frame was without a style.
        colors = self.browser.execute_script("return [...colors]")
        assert set(colors) <= {OLD_COLOR, NEW_COLOR}, colors
        assert self.browser.execute_script("return document.querySelectorAll('link[rel=stylesheet]').length") == 1
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")
        assert self.pages_asked() == 1
        self.browser.save_screenshot(str(self.screenshots / "version-new.png"))

    def stays_with_the_same_version(self):
        self.open()
        self.restart()
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")
        assert self.pages_asked() == 0
        state = self.browser.execute_script(STATE)
        assert state == [True, "2", True, 150], state


def main():
    _, program, screenshots = sys.argv
    # No device answers here.
    os.environ["DEVICES"] = "http://127.0.0.1:1"
    with Program(program) as home, launch_browser() as browser:
        page = OpenPage(browser, home, screenshots)
        run_checks([
            ("an open page stays as it is when the same program starts again", page.stays_with_the_same_version),
            ("an open page takes the heading and the style of a new version, with input, focus and scroll position", page.takes_a_new_version),
        ])


if __name__ == "__main__":
    main()
