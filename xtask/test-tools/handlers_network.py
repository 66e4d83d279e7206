"""Checks of handlers whose server cannot be reached, and of the policy of pages."""

from handlers_page import Page
from program import until

UNKNOWN = "It may have arrived: look before you send it again."


class Network(Page):
    def checks(self):
        return [
            ("no handler has thrown an exception that the console reports", self.the_console_has_no_exceptions),
            ("without a network, messages are shown at elements, texts stay, and handlers work afterwards", self.handlers_survive_a_cut),
            ("without a server, messages are shown at elements, texts stay, and handlers work afterwards", self.handlers_survive_a_restart),
            ("no page has violated the policy, and a violation on purpose is reported", self.only_a_violation_is_reported),
        ]

    def the_console_has_no_exceptions(self):
        errors = self.browser.read_console()
        # Chromium reports the refusals of services too, and the icon that the site does not have.
        errors = [one for one in errors if "Failed to load resource" not in one]
        assert not errors, errors
        # A control: the console would have an exception.
        self.browser.get(self.server.url("/violates"))
        self.click("#throw")
        until(lambda: any("on purpose" in one for one in self.browser.read_console()), "no exception in the console")

    def handlers_survive_a_cut(self):
        self.open("/offline")
        self.send("before the cut")
        self.browser.set_offline(True)
        try:
            self.is_unreachable("during the cut", "#cold")
        finally:
            self.browser.set_offline(False)
        self.works_again("during the cut", "#cold", "cold")

    def handlers_survive_a_restart(self):
        self.open("/offline")
        self.send("before the restart")
        self.server.kill()
        try:
            self.is_unreachable("during the restart", "#colder")
            # The script of the page attempts to connect in vain.
            self.holds("document.documentElement.dataset.live === 'connecting'")
        finally:
            self.server.start(self.server.address)
        self.works_again("during the restart", "#colder", "colder")

    def write(self, text):
        field = self.find("#draft")
        field.clear()
        field.send_keys(text)
        self.click("#warm")

    def send(self, text):
        self.write(text)
        self.is_noted(text)

    def is_noted(self, text):
        """The text is in the list once."""
        self.holds(f"[...document.querySelectorAll('li')].filter((one) => one.textContent === '{text}').length === 1")

    def is_unreachable(self, text, cold):
        self.write(text)
        self.holds(f"document.querySelector('#warm + .problem')?.textContent === '{UNKNOWN}'")
        self.click(cold)
        self.holds(f"document.querySelector('{cold} + .problem')?.textContent.includes('could not be loaded')")
        assert self.value("document.querySelector('#draft').value") == text

    def works_again(self, text, cold, noted):
        self.click(cold)
        self.holds(f"document.querySelector('#noted').textContent === '{noted}'")
        self.holds(f"!document.querySelector('{cold} + .problem')")
        assert self.value("document.querySelector('#draft').value") == text
        self.click("#warm")
        self.holds(f"document.querySelector('#noted').textContent === 'sent {text}'")
        self.holds("!document.querySelector('.problem')")
        # Also the live region works.
        self.is_noted(text)
        self.holds("document.documentElement.dataset.live === 'open'")

    def only_a_violation_is_reported(self):
        self.browser.get(self.server.url("/violates"))
        self.click("#violate")
        until(lambda: self.reports.received, "no report")
        assert self.browser.title != "violated", self.browser.title
        others = [one for one in self.reports.received if one["document-uri"] != self.server.url("/violates")]
        assert not others, others
        directives = {one["effective-directive"] for one in self.reports.received}
        assert directives == {"script-src-elem"}, directives
