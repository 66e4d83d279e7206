"""Checks the times of a page in browsers with other languages and time zones.

usage: times_browser.py PROGRAM SCREENSHOTS

PROGRAM is the example of times. Saves screenshots in the folder SCREENSHOTS.
"""

import pathlib
import sys

from selenium.webdriver.common.by import By

from browser import launch_browser
from checks import run_checks
from program import Program, page_holds

# The text that a visitor reads: of the shadow root, if there is one.
SHOWN = """[...document.querySelectorAll('time')].map((time) => {
  const place = time.firstElementChild;
  return (place.shadowRoot ?? place).textContent;
})"""
# Records each text that a visitor may see: the texts at the end of each frame, and each change of
# the nodes that the server wrote.
RECORD = f"""
window.frames_ = new Set();
window.changes = 0;
const record = () => {{ for (const text of {SHOWN}) window.frames_.add(text); requestAnimationFrame(record); }};
record();
for (const time of document.querySelectorAll('li time')) {{
  new MutationObserver((records) => window.changes += records.length)
    .observe(time, {{ subtree: true, childList: true, characterData: true, attributes: true }});
}}
"""


class Times:
    def __init__(self, program, german, japanese, screenshots):
        self.program, self.german, self.japanese = program, german, japanese
        self.screenshots = pathlib.Path(screenshots)
        self.screenshots.mkdir(parents=True, exist_ok=True)

    def keep(self, text, minutes):
        status, _ = self.program.ask("POST", "/", f"text={text}&minutes={minutes}", Content_Type="application/x-www-form-urlencoded")
        assert status == 303, status

    def open(self, browser):
        browser.get(self.program.url())
        page_holds(browser, "document.documentElement.dataset.live === 'open'")
        browser.execute_script("window.stays = true")

    def shown(self, browser):
        return browser.execute_script(f"return {SHOWN}")

    def server_writes_the_same_for_all(self):
        self.keep("old", 3.2)
        _, page = self.program.ask("GET", "/")
        assert '<time datetime="2026-11-23T14:05:00Z" data-time="date-time"><span>23 Nov 2026, 14:05 UTC</span></time>' in page, page
        assert '<script type="module" src="/_bine/times-' in page, page
        for browser in (self.german, self.japanese):
            self.open(browser)
            # The text in the page itself is the server's.
            texts = browser.execute_script("return [...document.querySelectorAll('time')].map((time) => time.textContent)")
            assert texts[1] == "23 Nov 2026, 14:05 UTC", texts

    def language_and_zone_are_the_visitors(self):
        self.open(self.german)
        page_holds(self.german, "document.querySelector('time span').shadowRoot")
        self.open(self.japanese)
        page_holds(self.japanese, "document.querySelector('time span').shadowRoot")
        german, japanese = self.shown(self.german), self.shown(self.japanese)
        assert german == ["23.11.2026", "23.11.2026, 15:05", "vor 3 Minuten"], german
        assert japanese == ["2026/11/23", "2026/11/23 23:05", "3 \u5206\u524d"], japanese
        title, lang = self.german.execute_script(
            "const { title, lang } = document.querySelectorAll('time span')[1].shadowRoot.firstChild; return [title, lang]")
        assert title.startswith("Montag, 23. November 2026") and title.endswith("MEZ") and lang.startswith("de"), (title, lang)
        self.german.save_screenshot(str(self.screenshots / "times-german.png"))
        self.japanese.save_screenshot(str(self.screenshots / "times-japanese.png"))

    def patches_change_no_time_that_is_shown(self):
        self.open(self.german)
        page_holds(self.german, "document.querySelector('li time span').shadowRoot")
        self.german.execute_script(RECORD)
        self.keep("new", 120.5)
        page_holds(self.german, "document.querySelectorAll('li').length === 2")
        page_holds(self.german, f"{SHOWN}.includes('vor 2 Stunden')")
        seen, changes = self.german.execute_script("return [[...window.frames_], window.changes]")
        assert not [text for text in seen if "UTC" in text], seen
        assert self.shown(self.german)[2:] == ["vor 2 Stunden", "vor 3 Minuten"], self.shown(self.german)
        assert self.german.execute_script("return window.stays"), "the page was loaded again"
        return f"{changes} changes of the first item"

    def first_time_of_a_region_is_shown(self):
        """The page had no relative time when it was loaded."""
        with Program(self.program.program) as fresh:
            self.german.get(fresh.url())
            page_holds(self.german, "document.documentElement.dataset.live === 'open'")
            fresh.ask("POST", "/", "text=a&minutes=1441", Content_Type="application/x-www-form-urlencoded")
            page_holds(self.german, f"{SHOWN}[2] === 'vor 1 Tag'")

    def relative_times_move_on(self):
        # In a second, it is a minute ago.
        self.keep("moving", 59 / 60)
        self.open(self.japanese)
        page_holds(self.japanese, f"{SHOWN}.includes('1 \u5206\u524d')")
        assert self.japanese.execute_script("return window.stays"), "the page was loaded again"

    def text_is_readable_without_script(self):
        self.german.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.german.get(self.program.url())
            text = self.german.find_element(By.TAG_NAME, "p").text
            assert text == "Opened on 23 Nov 2026, at 23 Nov 2026, 14:05 UTC.", text
        finally:
            self.german.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def console_is_empty(self):
        for browser in (self.german, self.japanese):
            lines = browser.get_log("browser")
            assert not [line for line in lines if "/_bine/times-" in line["message"]], lines


def main():
    program, screenshots = sys.argv[1:]
    with Program(program) as site, launch_browser(zone="Europe/Berlin", language="de-DE") as german, \
            launch_browser(zone="Asia/Tokyo", language="ja-JP") as japanese:
        times = Times(site, german, japanese, screenshots)
        run_checks([
            ("the server writes the same times for all visitors", times.server_writes_the_same_for_all),
            ("times are in the visitor's language and zone", times.language_and_zone_are_the_visitors),
            ("a patch keeps the times that are shown", times.patches_change_no_time_that_is_shown),
            ("the first time of a region is shown", times.first_time_of_a_region_is_shown),
            ("relative times move on", times.relative_times_move_on),
            ("times are readable without script", times.text_is_readable_without_script),
            ("the console has no message about times", times.console_is_empty),
        ])


main()
