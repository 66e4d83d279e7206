"""Checks the pages of accounts in a browser.

usage: accounts_browser.py PROGRAM [SCREENSHOTS]

PROGRAM is the example of accounts. With SCREENSHOTS, a folder, a picture of each page is stored there.
"""

import pathlib
import re
import sys
import urllib.parse

from selenium.webdriver.common.by import By

from browser import launch_browser, resize
from checks import run_checks
from program import Program, until

PASSWORD, NEW_PASSWORD = "hop vines in May", "another good phrase"
MAIL = "ann@example.org"


class Visitor:
    """One browser at the example."""

    def __init__(self, browser, program, pictures):
        self.browser, self.program, self.pictures = browser, program, pictures

    def open(self, path):
        self.browser.get(self.program.url(path))

    def text(self):
        return self.browser.execute_script("return document.body?.innerText ?? ''")

    def shows(self, text):
        until(lambda: text in self.text(), lambda: f"{text}: {self.text()}")

    def fill(self, form, **fields):
        """Fills in the form that sends to this path, and submits it with its last button."""
        form = self.browser.find_element(By.CSS_SELECTOR, f"form[action='{form}']")
        for name, value in fields.items():
            field = form.find_element(By.NAME, name)
            field.clear()
            field.send_keys(value)
        form.find_elements(By.TAG_NAME, "button")[-1].click()

    def take_picture(self, name):
        if self.pictures:
            self.browser.save_screenshot(str(self.pictures / f"{name}.png"))

    def link(self, page):
        """Waits for the last link of a mail in the program's log."""
        links = []

        def is_there():
            text = (pathlib.Path(self.program.folder.name) / "log").read_text()
            links[:] = re.findall(rf"http://\S+/{page}/\S+", text)
            return links

        until(is_there, f"no link to {page}")
        return urllib.parse.urlsplit(links[-1]).path

    def errors(self):
        """Messages of the browser's console, except those about statuses of failed forms."""
        log = self.browser.get_log("browser")
        return [entry for entry in log if "the server responded with a status" not in entry["message"]]


def signs_up(visitor):
    visitor.open("/")
    visitor.take_picture("home")
    visitor.open("/sign-up")
    visitor.fill("/sign-up", name="Ann", email=MAIL, password="password1")
    visitor.shows("attackers try first")
    visitor.take_picture("sign-up")
    field = visitor.browser.find_element(By.ID, "password")
    assert field.get_attribute("aria-invalid") == "true", field.get_attribute("outerHTML")
    described = field.get_attribute("aria-describedby").split()
    assert all(visitor.browser.find_elements(By.ID, name) for name in described), described
    visitor.fill("/sign-up", password=PASSWORD)
    visitor.shows("You are logged in as Ann.")
    visitor.take_picture("account")
    visitor.open(visitor.link("confirm-email"))
    visitor.browser.find_element(By.TAG_NAME, "button").click()
    visitor.shows("Your e-mail address is confirmed.")


def logs_out_in_two_tabs(visitor):
    browser = visitor.browser
    visitor.open("/minutes")
    visitor.shows("For Ann: hops grow well.")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    visitor.open("/account")
    visitor.fill("/log-out")
    visitor.shows("Remember me on this device")
    visitor.take_picture("log-in")
    browser.close()
    browser.switch_to.window(first)
    browser.refresh()
    visitor.shows("Log in first.")


def logs_in(visitor):
    visitor.open("/log-in?next=/minutes")
    visitor.fill("/log-in", name="ann", password=PASSWORD)
    visitor.shows("For Ann: hops grow well.")
    cookies = {cookie["name"]: cookie for cookie in visitor.browser.get_cookies()}
    assert "expiry" not in cookies["session"], cookies["session"]
    assert cookies["device"]["httpOnly"] and "expiry" in cookies["device"], cookies["device"]


def throttles_strangers_only(visitor, stranger):
    # On a busy machine, a hash may take longer than the first delays.
    for _ in range(15):
        stranger.open("/log-in")
        stranger.fill("/log-in", name="Ann", password="wrong password")
        until(lambda: stranger.browser.find_elements(By.CSS_SELECTOR, "[role=alert]"), stranger.text)
        if "Too many tries." in stranger.text():
            break
    stranger.shows("Too many tries.")
    stranger.take_picture("throttled")
    visitor.open("/account")
    visitor.fill("/log-out")
    logs_in(visitor)


def resets(visitor, stranger):
    stranger.open("/forgot-password")
    stranger.fill("/forgot-password", email=MAIL)
    stranger.shows("If an account has this address")
    stranger.take_picture("forgotten")
    link = stranger.link("reset-password")
    stranger.open(link)
    stranger.take_picture("reset")
    stranger.fill(link, new_password=NEW_PASSWORD)
    stranger.shows("Your new password is set.")
    # All sessions of the user have ended.
    visitor.open("/minutes")
    visitor.shows("Log in first.")
    stranger.open(link)
    stranger.shows("This link has expired or was used.")
    visitor.open("/log-in")
    visitor.fill("/log-in", name=MAIL, password=NEW_PASSWORD)
    visitor.shows("You are logged in as Ann.")


def works_without_script(visitor):
    visitor.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        visitor.open("/account")
        assert visitor.browser.find_elements(By.CSS_SELECTOR, "form[action='/account/password']")
        visitor.fill("/account/preferences")
        until(lambda: visitor.browser.current_url.endswith("done=preferences"), visitor.browser.current_url)
    finally:
        visitor.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def fits_a_phone(visitor):
    resize(visitor.browser, 360, 740)
    for path in ["/account", "/sign-up", "/log-in"]:
        visitor.open(path)
        width = visitor.browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= 360, (path, width)
    visitor.open("/account")
    visitor.take_picture("account-on-a-phone")


def reports_no_errors(*visitors):
    errors = [error for visitor in visitors for error in visitor.errors()]
    assert not errors, errors


def main():
    program, *pictures = sys.argv[1:]
    pictures = pathlib.Path(pictures[0]) if pictures else None
    with (
        Program(program, "--development", "on", "--error-log", "log") as server,
        launch_browser() as browser,
        launch_browser() as other,
    ):
        visitor, stranger = Visitor(browser, server, pictures), Visitor(other, server, pictures)
        run_checks([
            ("a visitor signs up and confirms an address", lambda: signs_up(visitor)),
            ("a log-out in one tab holds in the other", lambda: logs_out_in_two_tabs(visitor)),
            ("a user logs in for this browser session", lambda: logs_in(visitor)),
            ("wrong passwords delay strangers, not the owner's browser", lambda: throttles_strangers_only(visitor, stranger)),
            ("a link sets a new password once and ends all sessions", lambda: resets(visitor, stranger)),
            ("the pages work without script", lambda: works_without_script(visitor)),
            ("the pages fit a phone", lambda: fits_a_phone(visitor)),
            ("the browser reports no errors", lambda: reports_no_errors(visitor, stranger)),
        ])


if __name__ == "__main__":
    main()
