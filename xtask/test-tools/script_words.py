"""Checks what handlers of TSX pages can do besides calls of services: events, channels, navigation, and
handlers that components pass on.

usage: script_words.py BROWSER BINE SITE

BROWSER is `Chromium` or `Firefox`, BINE is the program, and SITE the folder of the application.
"""

import json
import sys

from selenium.webdriver.common.by import By

from browser import launch_browser
from checks import run_checks
from firefox import launch_firefox
from program import Program, page_holds, until

BROWSERS = {"Chromium": launch_browser, "Firefox": launch_firefox}


class Page:
    """A browser at the page."""

    def __init__(self, server, browser):
        self.server, self.browser = server, browser

    def open(self, path="/words"):
        self.browser.get(self.server.url(path))
        page_holds(self.browser, "document.documentElement.dataset.live === 'open'")

    def click(self, selector):
        self.browser.find_element(By.CSS_SELECTOR, selector).click()

    def holds(self, expression):
        page_holds(self.browser, expression)

    def has(self, selector, text):
        self.holds(f"document.querySelector({json.dumps(selector)}).textContent.includes({json.dumps(text)})")

    def lacks(self, selector, text):
        found = self.browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)
        assert text not in found, found

    def post(self, path, **arguments):
        status, text = self.server.ask("POST", path, json.dumps(arguments), Content_Type="application/json")
        assert status < 300, (status, text)

    def a_handler_hears_events_and_channels_from_the_page_on(self):
        self.post("/tell", text="before")
        self.post("/tell", room="hall", text="before")
        self.open()
        self.has("#log", "appears;")
        # The followers have begun when the server knows them.
        self.hear("/ring", "bell")
        self.hear("/tell", "told")
        self.hear("/tell", "room", room="hall")
        self.lacks("#heard", "before")

    def hear(self, path, kind, word="once", **arguments):
        """Sends until the page has heard one, then one more, which it hears once."""
        script = "const [path, body, done] = arguments; fetch(path, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }).then(done)"

        def heard():
            body = json.dumps({"text": f"ready {word}", **arguments})
            self.browser.execute_async_script(script, path, body)
            return f"{kind} ready {word};" in self.browser.execute_script("return document.querySelector('#heard').textContent")

        until(heard, f"nothing heard of {path}")
        self.post(path, text=word, **arguments)
        self.has("#heard", f"{kind} {word};")
        text = self.browser.execute_script("return document.querySelector('#heard').textContent")
        assert text.count(f"{kind} {word};") == 1, text

    def messages_arrive_in_their_order_and_once(self):
        for number in range(250):
            self.post("/tell", text=f"n{number}")
        self.has("#heard", "told n249;")
        text = self.browser.execute_script("return document.querySelector('#heard').textContent")
        found = [part for part in text.split(";") if part.startswith("told n")]
        assert found == [f"told n{number}" for number in range(250)], found

    def earlier_messages_are_read_from_the_start(self):
        self.click("#follow-all")
        self.has("#log", "before;")
        self.has("#log", "n249;")

    def messages_during_an_outage_arrive_afterwards(self):
        address = self.server.address
        self.server.kill()
        self.server.start(address)
        self.post("/tell", text="after the outage")
        self.has("#heard", "told after the outage;")
        self.hear("/ring", "bell", "again")

    def a_component_passes_its_handler_on(self):
        self.click("#first")
        self.has("#log", "first first hall;")
        self.click("#second")
        self.holds("document.querySelector('#items li')")
        self.has("#log", "+hall;")
        self.click("#items li button")
        self.has("#log", "pick ")
        self.click("#none")

    def a_handler_runs_when_its_element_leaves(self):
        self.post("/clear")
        self.holds("!document.querySelector('#items li')")
        self.has("#log", "-true;")
        self.click("#gone")
        self.has("#log", "leaves;")
        self.post("/tell", text="unheard")
        self.post("/ring", text="unheard")

    def named_functions_are_handlers(self):
        self.click("#named")
        self.has("#named", "a2")
        self.click("#shared")
        self.has("#shared", "a!")

    def a_handler_of_a_component_decides_about_its_event(self):
        self.click("#kept")
        assert not self.browser.execute_script("return document.querySelector('#kept').checked")

    def a_service_of_a_handler_changes_the_frame(self):
        self.click("#mark")
        self.has("#marked", "hall")
        # Another tab has its own.
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.open()
        self.has("#marked", "nothing")
        self.browser.close()
        self.browser.switch_to.window(first)

    def navigation_shows_the_other_page_in_place(self):
        self.browser.execute_script("window.isSame = true")
        self.click("#leave")
        self.has("h1", "Other")
        assert self.browser.current_url.split("?")[0].endswith("/other"), self.browser.current_url
        self.click("#here")
        self.holds("document.title === 'here'")
        self.browser.back()
        self.has("h1", "Words")
        self.has("#log", "appears;")
        assert self.browser.execute_script("return window.isSame")
        self.click("#missing")
        self.holds("document.querySelector('h1')?.textContent !== 'Words'")
        assert not self.browser.execute_script("return window.isSame ?? false")

    def the_console_has_no_errors(self):
        # The page that does not exist, and the outage.
        expected = ("Failed to load resource", "Failed to fetch", "NetworkError", "network error")
        errors = [error for error in self.browser.read_console() if not any(part in error for part in expected)]
        assert not errors, errors


def main(name, bine, site):
    with Program(bine, words=("serve", site)) as server, BROWSERS[name]() as browser:
        page = Page(server, browser)
        checks = [
            ("a handler hears events and channels from the page on", page.a_handler_hears_events_and_channels_from_the_page_on),
            ("messages arrive in their order, and once", page.messages_arrive_in_their_order_and_once),
            ("a handler reads earlier messages from the start", page.earlier_messages_are_read_from_the_start),
            ("messages during an outage arrive afterwards", page.messages_during_an_outage_arrive_afterwards),
            ("a component passes its handler on", page.a_component_passes_its_handler_on),
            ("a handler runs when its element leaves the page", page.a_handler_runs_when_its_element_leaves),
            ("named functions are handlers", page.named_functions_are_handlers),
            ("a handler of a component decides about its event", page.a_handler_of_a_component_decides_about_its_event),
            ("a service of a handler changes the values of the tab", page.a_service_of_a_handler_changes_the_frame),
            ("navigation shows the other page in place", page.navigation_shows_the_other_page_in_place),
            ("the console has no errors", page.the_console_has_no_errors),
        ]
        run_checks([(f"{claim} ({name})", check) for claim, check in checks])


if __name__ == "__main__":
    main(*sys.argv[1:])
